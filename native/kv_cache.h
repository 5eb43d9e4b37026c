// Keys and values of one sequence, in 16-bit integers with one unit for each token and head.
//
// A slot holds one token. The first `length` slots are committed, slot = position; the slots behind them belong to the
// rows of the last pass. Slots are kept in chunks, as attention takes them, which come from the model's pool as they are
// needed. Sequences that begin alike share chunks: a pass copies the one it would write into where another sequence holds
// it too, so nobody writes slots that others have committed. Integers stand in pairs, as the dot products take them: a
// chunk's keys of sixteen slots form a block, transposed so that one load serves sixteen scores; values are paired with
// the neighbouring slot's, so that one load serves sixteen dimensions. In a chunk:
//   [layer][head]
//     keys         [slot / 16][dimension / 2][slot % 16][dimension % 2]    dimensions padded to four
//     values       [slot / 2][dimension][slot % 2]                         dimensions padded to sixteen
//     key units    [slot]                                                  a number is its integer times the unit
//     value units  [slot]
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "kv_pool.h"
#include "packed.h"

namespace borrador {

// One head's part of a chunk, or of a copy of some slots.
struct KvView {
  int16_t *keys = nullptr, *values = nullptr;
  float *key_units = nullptr, *value_units = nullptr;
  size_t key_stride = 0, value_stride = 0;  // integers of a slot

  // What begins at a slot, which is a multiple of sixteen.
  KvView from(size_t slot) const {
    return {keys + slot * key_stride, values + slot * value_stride, key_units + slot, value_units + slot, key_stride, value_stride};
  }
  // Where a slot's first pair of a key is; the next ones follow at intervals of sixteen pairs.
  int16_t* key(size_t slot) const { return keys + slot / lanes * lanes * key_stride + slot % lanes * 2; }
  // Where the first integer of a slot's value is; the next ones follow at intervals of two.
  int16_t* value(size_t slot) const { return values + slot / 2 * 2 * value_stride + slot % 2; }

  // Makes `to_slot` of another view of the same strides equal to `slot`.
  void copy_slot(size_t slot, const KvView& to, size_t to_slot) const;
  // Makes the first `slots` of another view of the same strides equal to those here.
  void copy_first(size_t slots, const KvView& to) const;
};

// What decides where keys and values lie in a chunk.
struct KvShape {
  size_t layers, heads, head_dim;

  // Integers of a key, padded to whole pairs of pairs.
  static size_t padded_key(size_t head_dim) { return (head_dim + 3) / 4 * 4; }
  static size_t padded_value(size_t head_dim) { return (head_dim + lanes - 1) / lanes * lanes; }
  size_t head_bytes() const {
    return attention_chunk * ((padded_key(head_dim) + padded_value(head_dim)) * sizeof(int16_t) + 2 * sizeof(float));
  }
  // Of all layers and heads.
  size_t chunk_bytes() const { return layers * heads * head_bytes(); }
  // Chunks that so many tokens take.
  static size_t chunks_of(size_t tokens) { return tokens / attention_chunk + (tokens % attention_chunk != 0); }
};

// Whatever drops tokens gives chunks that hold none of the others back to the pool.
class KvCache {
 public:
  // The pool's chunks must be of the shape's size. Throws std::bad_alloc where no machine could hold so much.
  KvCache(const KvShape& shape, std::shared_ptr<KvPool> pool, size_t capacity);

  size_t length() const { return length_; }
  size_t capacity() const { return capacity_; }
  size_t pending() const { return pending_; }
  size_t head_dim() const { return shape_.head_dim; }
  size_t key_stride() const { return key_stride_; }
  size_t value_stride() const { return value_stride_; }
  const KvPool& pool() const { return *pool_; }

  // Slots of one chunk, counted from its begin.
  KvView view(size_t layer, size_t head, size_t chunk) const { return view_of(chunks_[chunk], layer, head); }

  // Writes one head's key and value of a slot, head_dim integers each.
  void store(size_t layer, size_t head, size_t slot, const int16_t* key, float key_unit, const int16_t* value, float value_unit);

  // New chunks that a pass of so many rows needs: those that are not there, and one for each that others hold too.
  size_t missing(size_t rows) const;
  // Makes the rows of a pass pending: slots length .. length + rows. Takes the chunks that are missing from the end of
  // `chunks`, which must hold them.
  void begin_pass(size_t rows, std::vector<KvChunk>& chunks) noexcept;
  // Moves the pending rows of `path` (ascending) to the end of the committed part and drops the others.
  void commit(std::span<const int32_t> path);
  // Lets the first `length` slots count as committed, whatever they hold: passes behind them take the time they always do.
  // Throws as KvPool::take does.
  void assume(size_t length);
  // Drops pending rows and everything from `length` on; length <= this->length().
  void rewind(size_t length);
  // Drops everything and holds the first `length` committed tokens of `source`, in the same chunks. Throws
  // std::invalid_argument where that has fewer, is this cache or another model's, or where they do not fit.
  void copy_from(const KvCache& source, size_t length);

 private:
  KvView view_of(const KvChunk& chunk, size_t layer, size_t head) const;
  bool is_missing(size_t chunk) const { return chunk >= chunks_.size() || chunks_[chunk].use_count() > 1; }
  size_t first_written() const { return length_ / attention_chunk; }
  void replace(size_t chunk, KvChunk with) noexcept;
  void move_slot(size_t from, size_t to);

  KvShape shape_;
  size_t key_stride_, value_stride_, capacity_;
  size_t length_ = 0, pending_ = 0;
  std::shared_ptr<KvPool> pool_;
  std::vector<KvChunk> chunks_;  // has room for all from the beginning
};

}  // namespace borrador
