// Attention of the rows of a pass over their caches.
//
// Positions are taken in chunks of `attention_chunk`, in logical order: exact maximum, exponentials and weighted values
// within a chunk, then the chunk is folded into the running state. Every step of a row depends on its own query and its
// own past alone, so neither the other rows nor the way the rows were split into passes changes a bit. Positions that a
// sliding window hides have probability 0, and chunks that it hides whole are left out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "kv_cache.h"

namespace borrador {

inline constexpr size_t attention_chunk = 256;

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
  std::vector<float> query, scores, chunk_out, out, maximum, sum;
  std::vector<uint16_t> branch_keys, branch_values;
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

// Attends the rows of a tile with the query heads of one key-value head. Queries are scaled already. Row r, head h lie
// at queries[r * query_stride + h * head_dim] and out[r * heads * head_dim + h * head_dim].
void attend(const KernelTable& kernels, const AttentionShape& shape, size_t kv_head, const RowView* rows, size_t count, const float* queries,
            size_t query_stride, float* out, AttentionScratch& scratch);

}  // namespace borrador
