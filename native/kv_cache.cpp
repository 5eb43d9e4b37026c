#include "kv_cache.h"

#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace borrador {

namespace {

constexpr size_t addressable = SIZE_MAX >> 17;

}  // namespace

void KvView::copy_slot(size_t slot, const KvView& to, size_t to_slot) const {
  const int16_t *key_from = key(slot), *value_from = value(slot);
  int16_t *key_to = to.key(to_slot), *value_to = to.value(to_slot);
  for (size_t pair = 0; pair < key_stride / 2; ++pair) std::memcpy(key_to + pair * lanes * 2, key_from + pair * lanes * 2, 2 * sizeof(int16_t));
  for (size_t d = 0; d < value_stride; ++d) value_to[2 * d] = value_from[2 * d];
  to.key_units[to_slot] = key_units[slot];
  to.value_units[to_slot] = value_units[slot];
}

// Blocks of sixteen slots are copied whole: what lies behind the last slot has no meaning.
void KvView::copy_first(size_t slots, const KvView& to) const {
  const size_t padded = (slots + lanes - 1) / lanes * lanes;
  std::memcpy(to.keys, keys, padded * key_stride * sizeof(int16_t));
  std::memcpy(to.values, values, padded * value_stride * sizeof(int16_t));
  std::memcpy(to.key_units, key_units, padded * sizeof(float));
  std::memcpy(to.value_units, value_units, padded * sizeof(float));
}

KvCache::KvCache(const KvShape& shape, std::shared_ptr<KvPool> pool, size_t capacity)
    : shape_(shape), key_stride_(KvShape::padded_key(shape.head_dim)), value_stride_(KvShape::padded_value(shape.head_dim)), capacity_(capacity),
      pool_(std::move(pool)) {
  const size_t chunks = KvShape::chunks_of(capacity);
  if (chunks > addressable / pool_->chunk_bytes()) throw std::bad_alloc();
  chunks_.reserve(chunks);
}

KvView KvCache::view_of(const KvChunk& chunk, size_t layer, size_t head) const {
  auto* keys = reinterpret_cast<int16_t*>(chunk.get() + (layer * shape_.heads + head) * shape_.head_bytes());
  int16_t* values = keys + attention_chunk * key_stride_;
  auto* units = reinterpret_cast<float*>(values + attention_chunk * value_stride_);
  return {keys, values, units, units + attention_chunk, key_stride_, value_stride_};
}

void KvCache::store(size_t layer, size_t head, size_t slot, const int16_t* key, float key_unit, const int16_t* value, float value_unit) {
  const KvView to = view(layer, head, slot / attention_chunk);
  const size_t at = slot % attention_chunk;
  int16_t *key_to = to.key(at), *value_to = to.value(at);
  for (size_t d = 0; d < shape_.head_dim; ++d) key_to[d / 2 * lanes * 2 + d % 2] = key[d];
  for (size_t d = 0; d < shape_.head_dim; ++d) value_to[2 * d] = value[d];
  to.key_units[at] = key_unit;
  to.value_units[at] = value_unit;
}

void KvCache::move_slot(size_t from, size_t to) {
  for (size_t layer = 0; layer < shape_.layers; ++layer)
    for (size_t head = 0; head < shape_.heads; ++head)
      view(layer, head, from / attention_chunk).copy_slot(from % attention_chunk, view(layer, head, to / attention_chunk), to % attention_chunk);
}

size_t KvCache::missing(size_t rows) const {
  size_t count = 0;
  for (size_t chunk = first_written(); chunk < KvShape::chunks_of(length_ + rows); ++chunk) count += is_missing(chunk);
  return count;
}

void KvCache::begin_pass(size_t rows, std::vector<KvChunk>& chunks) noexcept {
  for (size_t chunk = first_written(); chunk < KvShape::chunks_of(length_ + rows); ++chunk) {
    if (!is_missing(chunk)) continue;
    if (chunk < chunks_.size()) replace(chunk, std::move(chunks.back()));
    else chunks_.push_back(std::move(chunks.back()));
    chunks.pop_back();
  }
  pending_ = rows;
}

// Puts a copy of a chunk's committed slots in its place.
void KvCache::replace(size_t chunk, KvChunk with) noexcept {
  const size_t slots = chunk == first_written() ? length_ % attention_chunk : 0;
  for (size_t layer = 0; layer < shape_.layers; ++layer)
    for (size_t head = 0; head < shape_.heads; ++head) view(layer, head, chunk).copy_first(slots, view_of(with, layer, head));
  chunks_[chunk] = std::move(with);
}

// Others that have come to hold a chunk since the pass began have committed nothing behind this cache's length: no chunk
// needs to be copied here.
void KvCache::commit(std::span<const int32_t> path) {
  for (size_t i = 0; i < path.size(); ++i)
    if (size_t(path[i]) != i) move_slot(length_ + size_t(path[i]), length_ + i);
  rewind(length_ + path.size());
}

void KvCache::assume(size_t length) {
  const size_t chunks = KvShape::chunks_of(length);
  if (chunks > chunks_.size())
    for (KvChunk& chunk : pool_->take(chunks - chunks_.size())) chunks_.push_back(std::move(chunk));
  rewind(length);
}

void KvCache::rewind(size_t length) {
  length_ = length, pending_ = 0;
  chunks_.resize(KvShape::chunks_of(length));
}

void KvCache::copy_from(const KvCache& source, size_t length) {
  if (&source == this || pool_ != source.pool_ || length > source.length_ || length > capacity_)
    throw std::invalid_argument("cannot copy from this cache");
  chunks_.assign(source.chunks_.begin(), source.chunks_.begin() + std::ptrdiff_t(KvShape::chunks_of(length)));
  rewind(length);
}

}  // namespace borrador
