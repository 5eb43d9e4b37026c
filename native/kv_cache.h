// Keys and values of one sequence, in half precision.
//
// A slot holds one token. The first `length` slots are committed, slot = position; the slots behind them belong to the
// rows of the last pass. For each layer and head the keys of sixteen slots form a block, transposed so that one load
// serves sixteen scores; values stay row by row, padded to whole vectors:
//   keys    [layer][head][slot / 16][dimension][slot % 16]
//   values  [layer][head][slot][dimension, padded to sixteen]
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory.h"
#include "packed.h"

namespace borrador {

class KvCache {
 public:
  KvCache(size_t layers, size_t heads, size_t head_dim, size_t capacity);

  size_t length() const { return length_; }
  size_t capacity() const { return capacity_; }
  size_t pending() const { return pending_; }
  size_t head_dim() const { return head_dim_; }

  uint16_t* keys(size_t layer, size_t head) { return keys_.as<uint16_t>() + (layer * heads_ + head) * padded_ * head_dim_; }
  uint16_t* values(size_t layer, size_t head) { return values_.as<uint16_t>() + (layer * heads_ + head) * padded_ * value_stride_; }
  size_t value_stride() const { return value_stride_; }

  // Writes one head's key and value of a slot.
  void store(size_t layer, size_t head, size_t slot, const uint16_t* key, const uint16_t* value);

  // Makes the rows of a pass pending: slots length .. length + rows.
  void begin_pass(size_t rows) { pending_ = rows; }
  // Moves the pending rows of `path` (ascending) to the end of the committed part and drops the others.
  void commit(std::span<const int32_t> path);
  // Drops pending rows and everything from `length` on; length <= this->length().
  void rewind(size_t length) { length_ = length, pending_ = 0; }

 private:
  void move_slot(size_t from, size_t to);

  size_t layers_, heads_, head_dim_, value_stride_, capacity_, padded_;
  size_t length_ = 0, pending_ = 0;
  PageBuffer keys_, values_;
};

}  // namespace borrador
