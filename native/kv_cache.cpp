#include "kv_cache.h"

#include <cstring>
#include <stdexcept>

namespace borrador {

namespace {

size_t head_bytes(size_t key_stride, size_t value_stride) {
  return attention_chunk * ((key_stride + value_stride) * sizeof(int16_t) + 2 * sizeof(float));
}

}  // namespace

void KvView::copy_slot(size_t slot, const KvView& to, size_t to_slot) const {
  const int16_t *key_from = key(slot), *value_from = value(slot);
  int16_t *key_to = to.key(to_slot), *value_to = to.value(to_slot);
  for (size_t pair = 0; pair < key_stride / 2; ++pair) std::memcpy(key_to + pair * lanes * 2, key_from + pair * lanes * 2, 2 * sizeof(int16_t));
  for (size_t d = 0; d < value_stride; ++d) value_to[2 * d] = value_from[2 * d];
  to.key_units[to_slot] = key_units[slot];
  to.value_units[to_slot] = value_units[slot];
}

KvCache::KvCache(size_t layers, size_t heads, size_t head_dim, size_t capacity)
    : layers_(layers), heads_(heads), head_dim_(head_dim), key_stride_(padded_key(head_dim)), value_stride_(padded_value(head_dim)),
      capacity_(capacity),
      chunks_((capacity + attention_chunk - 1) / attention_chunk * chunk_bytes(), PageBuffer::Pages::huge) {}

KvView KvCache::view(size_t layer, size_t head, size_t chunk) const {
  uint8_t* begin = chunks_.data() + ((chunk * layers_ + layer) * heads_ + head) * head_bytes(key_stride_, value_stride_);
  auto* keys = reinterpret_cast<int16_t*>(begin);
  int16_t* values = keys + attention_chunk * key_stride_;
  auto* units = reinterpret_cast<float*>(values + attention_chunk * value_stride_);
  return {keys, values, units, units + attention_chunk, key_stride_, value_stride_};
}

void KvCache::store(size_t layer, size_t head, size_t slot, const int16_t* key, float key_unit, const int16_t* value, float value_unit) {
  const KvView to = view(layer, head, slot / attention_chunk);
  const size_t at = slot % attention_chunk;
  int16_t *key_to = to.key(at), *value_to = to.value(at);
  for (size_t d = 0; d < head_dim_; ++d) key_to[d / 2 * lanes * 2 + d % 2] = key[d];
  for (size_t d = 0; d < head_dim_; ++d) value_to[2 * d] = value[d];
  to.key_units[at] = key_unit;
  to.value_units[at] = value_unit;
}

void KvCache::move_slot(size_t from, size_t to) {
  for (size_t layer = 0; layer < layers_; ++layer)
    for (size_t head = 0; head < heads_; ++head)
      view(layer, head, from / attention_chunk).copy_slot(from % attention_chunk, view(layer, head, to / attention_chunk), to % attention_chunk);
}

void KvCache::commit(std::span<const int32_t> path) {
  for (size_t i = 0; i < path.size(); ++i)
    if (size_t(path[i]) != i) move_slot(length_ + size_t(path[i]), length_ + i);
  length_ += path.size();
  pending_ = 0;
}

// Of all layers and heads.
size_t KvCache::chunk_bytes() const { return layers_ * heads_ * head_bytes(key_stride_, value_stride_); }

void KvCache::copy_from(const KvCache& source, size_t length) {
  const bool alike = layers_ == source.layers_ && heads_ == source.heads_ && head_dim_ == source.head_dim_;
  if (&source == this || !alike || length > source.length_ || length > capacity_) throw std::invalid_argument("cannot copy from this cache");
  std::memcpy(chunks_.data(), source.chunks_.data(), (length + attention_chunk - 1) / attention_chunk * chunk_bytes());
  rewind(length);
}

}  // namespace borrador
