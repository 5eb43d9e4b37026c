// Attention of the rows of a pass over their caches.
//
// Positions are taken in chunks of `attention_chunk`, in logical order: exact maximum, exponentials and weighted values
// within a chunk, then the chunk is folded into the running state. Scores and weighted values are products of integers,
// exact whatever the order: the softmax's weights are rounded to the unit of their row and chunk (kernels.h). Every step of a row depends on its own query and its
// own past alone, so neither the other rows nor the way the rows were split into passes changes a bit. Positions that a
// sliding window hides have probability 0, and chunks that it hides whole are left out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "kv_cache.h"

namespace borrador {

// One row of a pass, as attention sees it.
struct RowView {
  KvCache* cache = nullptr;
  size_t position = 0;
  size_t slot = 0;
  // Slots of the row's uncommitted ancestors and its own, by position; empty where slot = position for all of them.
  std::vector<uint32_t> branch;

  size_t visible() const { return position + 1; }
};

// What one thread needs while it attends.
struct AttentionScratch {
  std::vector<float> chunk, out, maximum, sum, key_units, value_units, branch_key_units, branch_value_units;
  std::vector<int32_t> dots, products;
  std::vector<int16_t> weights, branch_keys, branch_values;
};

// The queries of a pass's rows, scaled and in integers: [key-value head][row][query head of it][key stride], padded with
// zeros; and their units.
struct Queries {
  const int16_t* values;
  const float* units;
  size_t rows;
};

// Rows [begin, end) of one cache that are attended together.
struct RowTile {
  size_t begin, end;
};

// Tiles of at most `most` neighbouring rows that share a cache.
void make_tiles(const RowView* rows, size_t count, size_t most, std::vector<RowTile>& out);

struct AttentionShape {
  size_t layer, heads, kv_heads, head_dim;
  size_t window = 0;   // latest positions that a row sees, its own among them; 0: all
  float soft_cap = 0;  // scores become cap * tanh(score / cap); 0: they stay

  // First position that a row sees.
  size_t first_visible(const RowView& row) const { return window && row.visible() > window ? row.visible() - window : 0; }
};

// The attention of a tile's rows, of which `first_row` is the first of the pass's, in one layer. What comes out for row r of
// the tile and head h lies at out[r * heads * head_dim + h * head_dim].
class TileAttention {
 public:
  TileAttention(const KernelTable& kernels, const AttentionShape& shape, const RowView* rows, size_t count, const Queries& queries, size_t first_row,
                float* out);

  // Chunks that all rows find in the cache itself, and the floats that the results of one of them take. Threads may
  // compute them in any order, ahead of `attend`, which folds them in theirs.
  size_t chunks_ahead() const { return straight_end_ - first_chunk_; }
  size_t result_floats() const { return vectors_ * (3 + value_stride_); }
  void compute_ahead(size_t kv_head, size_t chunk, float* results, AttentionScratch& scratch) const;

  // Attends with the query heads of one key-value head. `ahead` holds the results of all chunks ahead; null: none.
  void attend(size_t kv_head, float* ahead, AttentionScratch& scratch) const;

 private:
  struct Results {
    float *maximum, *sum, *unit, *out;
  };

  Results results_at(float* place) const { return {place, place + vectors_, place + 2 * vectors_, place + 3 * vectors_}; }
  void prepare(AttentionScratch& scratch) const;
  void compute_straight(size_t kv_head, size_t chunk, float* results, AttentionScratch& scratch) const;
  void compute(size_t kv_head, const RowView& past, size_t begin, size_t end, size_t first, size_t count, const Results& results,
               AttentionScratch& scratch) const;
  void weigh(size_t begin, size_t end, size_t first, size_t count, const float* query_units, const Results& results,
             AttentionScratch& scratch) const;
  void fold(const Results& results, size_t first, size_t count, AttentionScratch& scratch) const;
  void attend_branches(size_t kv_head, AttentionScratch& scratch) const;

  const KernelTable& kernels_;
  const AttentionShape& shape_;
  const RowView* rows_;
  size_t count_;
  Queries queries_;
  size_t first_row_;
  float* out_;
  size_t heads_per_row_, vectors_, key_stride_, value_stride_;
  size_t most_visible_ = 0, first_chunk_ = 0, straight_end_ = 0;  // chunks are counted from position 0
};

}  // namespace borrador
