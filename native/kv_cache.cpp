#include "kv_cache.h"

#include <cstring>

namespace borrador {

KvCache::KvCache(size_t layers, size_t heads, size_t head_dim, size_t capacity)
    : layers_(layers), heads_(heads), head_dim_(head_dim), value_stride_((head_dim + lanes - 1) / lanes * lanes), capacity_(capacity),
      padded_((capacity + lanes - 1) / lanes * lanes),
      keys_(layers * heads * padded_ * head_dim * sizeof(uint16_t), PageBuffer::Pages::normal),
      values_(layers * heads * padded_ * value_stride_ * sizeof(uint16_t), PageBuffer::Pages::normal) {}

void KvCache::store(size_t layer, size_t head, size_t slot, const uint16_t* key, const uint16_t* value) {
  uint16_t* block = keys(layer, head) + slot / lanes * lanes * head_dim_ + slot % lanes;
  for (size_t d = 0; d < head_dim_; ++d) block[d * lanes] = key[d];
  std::memcpy(values(layer, head) + slot * value_stride_, value, head_dim_ * sizeof(uint16_t));
}

void KvCache::move_slot(size_t from, size_t to) {
  for (size_t layer = 0; layer < layers_; ++layer) {
    for (size_t head = 0; head < heads_; ++head) {
      uint16_t* key = keys(layer, head);
      const uint16_t* source = key + from / lanes * lanes * head_dim_ + from % lanes;
      uint16_t* target = key + to / lanes * lanes * head_dim_ + to % lanes;
      for (size_t d = 0; d < head_dim_; ++d) target[d * lanes] = source[d * lanes];
      uint16_t* value = values(layer, head);
      std::memcpy(value + to * value_stride_, value + from * value_stride_, head_dim_ * sizeof(uint16_t));
    }
  }
}

void KvCache::commit(std::span<const int32_t> path) {
  for (size_t i = 0; i < path.size(); ++i)
    if (size_t(path[i]) != i) move_slot(length_ + size_t(path[i]), length_ + i);
  length_ += path.size();
  pending_ = 0;
}

}  // namespace borrador
