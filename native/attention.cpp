#include "attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace borrador {

namespace {

// Positions [begin, begin + count) of a chunk, stored one behind the other.
struct Run {
  const uint16_t *keys, *values;
  size_t begin, count;
};

size_t whole_vectors(size_t count) { return (count + lanes - 1) / lanes * lanes; }

// First position that a row's branch copy covers: the start of the block that holds the first uncommitted position.
size_t branch_start(const RowView& row) { return row.cache->length() / lanes * lanes; }

// Copies the block that the branch begins in and the branch itself, so that they lie in logical order.
void copy_branch(const AttentionShape& shape, size_t kv_head, const RowView& row, AttentionScratch& scratch) {
  KvCache& cache = *row.cache;
  const size_t begin = branch_start(row), committed = cache.length(), dims = shape.head_dim, stride = cache.value_stride();
  const size_t padded = whole_vectors(row.visible() - begin);
  scratch.branch_keys.assign(padded * dims, 0);
  scratch.branch_values.assign(padded * stride, 0);
  const uint16_t *keys = cache.keys(shape.layer, kv_head), *values = cache.values(shape.layer, kv_head);
  for (size_t position = begin; position < row.visible(); ++position) {
    const size_t slot = position < committed ? position : row.branch[position - committed], at = position - begin;
    const uint16_t* from = keys + slot / lanes * lanes * dims + slot % lanes;
    uint16_t* to = scratch.branch_keys.data() + at / lanes * lanes * dims + at % lanes;
    for (size_t d = 0; d < dims; ++d) to[d * lanes] = from[d * lanes];
    std::memcpy(scratch.branch_values.data() + at * stride, values + slot * stride, stride * sizeof(uint16_t));
  }
}

// The runs that hold positions [begin, end) for a row: the cache, then the branch copy.
size_t find_runs(const AttentionShape& shape, size_t kv_head, const RowView& row, size_t begin, size_t end, const AttentionScratch& scratch,
                 Run (&runs)[2]) {
  KvCache& cache = *row.cache;
  const size_t dims = shape.head_dim, stride = cache.value_stride();
  const size_t border = row.branch.empty() ? end : std::clamp(branch_start(row), begin, end);
  size_t count = 0;
  if (begin < border)
    runs[count++] = {cache.keys(shape.layer, kv_head) + begin * dims, cache.values(shape.layer, kv_head) + begin * stride, begin, border - begin};
  if (border < end) {
    const size_t at = border - branch_start(row);
    runs[count++] = {scratch.branch_keys.data() + at * dims, scratch.branch_values.data() + at * stride, border, end - border};
  }
  return count;
}

// Positions of a chunk that a row sees, counted from the chunk's begin; empty where begin >= end.
struct Seen {
  size_t begin, end;
};

Seen seen_in_chunk(const AttentionShape& shape, const RowView& row, size_t chunk_begin, size_t positions) {
  const auto within = [&](size_t position) { return std::clamp(position, chunk_begin, chunk_begin + positions) - chunk_begin; };
  return {within(shape.first_visible(row)), within(row.visible())};
}

// `count` query vectors, `first` of the tile on, against one chunk of positions that they all find in the same runs.
void attend_chunk(const KernelTable& kernels, const AttentionShape& shape, const Run* runs, size_t run_count, size_t chunk_begin,
                  const RowView* rows, size_t first, size_t count, size_t value_stride, AttentionScratch& scratch) {
  const size_t heads_per_row = shape.heads / shape.kv_heads, dims = shape.head_dim;
  float* scores = scratch.scores.data();
  size_t positions = 0;
  for (size_t r = 0; r < run_count; ++r) {
    kernels.mix(runs[r].keys, lanes, lanes * dims, whole_vectors(runs[r].count) / lanes, dims, scratch.query.data() + first * dims, dims, count,
                scores + positions, attention_chunk, false);
    positions += runs[r].count;
  }
  const size_t padded = whole_vectors(positions);
  float maximum[64], sum[64];
  for (size_t from = 0; from < count; from += 64) {
    const size_t here = std::min<size_t>(64, count - from);
    for (size_t i = 0; i < here; ++i) {
      const Seen seen = seen_in_chunk(shape, rows[(first + from + i) / heads_per_row], chunk_begin, positions);
      float* row_scores = scores + (from + i) * attention_chunk;
      sum[i] = 0;
      if (seen.begin >= seen.end) {
        std::fill_n(row_scores, padded, 0.0f);
        continue;
      }
      if (shape.soft_cap != 0) kernels.soft_cap(row_scores, padded, shape.soft_cap);
      kernels.softmax_chunk(row_scores, seen.begin, seen.end, padded, &maximum[i], &sum[i]);
    }
    size_t offset = 0;
    for (size_t r = 0; r < run_count; ++r) {
      kernels.mix(runs[r].values, value_stride, lanes, value_stride / lanes, runs[r].count, scores + from * attention_chunk + offset,
                  attention_chunk, here, scratch.chunk_out.data(), value_stride, r > 0);
      offset += runs[r].count;
    }
    for (size_t i = 0; i < here; ++i) {
      if (sum[i] == 0) continue;
      const size_t at = first + from + i;
      kernels.fold_chunk(&scratch.maximum[at], &scratch.sum[at], scratch.out.data() + at * value_stride, maximum[i], sum[i],
                         scratch.chunk_out.data() + i * value_stride, value_stride);
    }
  }
}

}  // namespace

void make_tiles(const RowView* rows, size_t count, size_t most, std::vector<RowTile>& out) {
  out.clear();
  for (size_t i = 0; i < count; ++i) {
    const bool joins = !out.empty() && rows[out.back().begin].cache == rows[i].cache && i - out.back().begin < most;
    if (joins) out.back().end = i + 1;
    else out.push_back({i, i + 1});
  }
}

void attend(const KernelTable& kernels, const AttentionShape& shape, size_t kv_head, const RowView* rows, size_t count, const float* queries,
            size_t query_stride, float* out, AttentionScratch& scratch) {
  const size_t heads_per_row = shape.heads / shape.kv_heads, dims = shape.head_dim, vectors = count * heads_per_row;
  const size_t value_stride = rows[0].cache->value_stride(), width = heads_per_row * dims;
  scratch.query.resize(vectors * dims);
  scratch.scores.resize(vectors * attention_chunk);
  scratch.chunk_out.resize(std::min<size_t>(vectors, 64) * value_stride);
  scratch.out.assign(vectors * value_stride, 0.0f);
  scratch.maximum.assign(vectors, -std::numeric_limits<float>::infinity());
  scratch.sum.assign(vectors, 0.0f);
  size_t first_visible = SIZE_MAX, most_visible = 0, straight_until = SIZE_MAX;
  for (size_t r = 0; r < count; ++r) {
    std::memcpy(scratch.query.data() + r * width, queries + r * query_stride + kv_head * width, width * sizeof(float));
    first_visible = std::min(first_visible, shape.first_visible(rows[r]));
    most_visible = std::max(most_visible, rows[r].visible());
    if (!rows[r].branch.empty()) straight_until = std::min(straight_until, branch_start(rows[r]));
  }
  Run runs[2];
  size_t begin = first_visible / attention_chunk * attention_chunk;
  for (; begin < most_visible && std::min(begin + attention_chunk, most_visible) <= straight_until; begin += attention_chunk) {
    const RowView shared{rows[0].cache, 0, 0, {}};
    const size_t run_count = find_runs(shape, kv_head, shared, begin, std::min(begin + attention_chunk, most_visible), scratch, runs);
    attend_chunk(kernels, shape, runs, run_count, begin, rows, 0, vectors, value_stride, scratch);
  }
  if (begin < most_visible) {  // branches of a tree: each row has a past of its own from here on
    for (size_t r = 0; r < count; ++r) {
      if (!rows[r].branch.empty()) copy_branch(shape, kv_head, rows[r], scratch);
      const size_t first = shape.first_visible(rows[r]) / attention_chunk * attention_chunk;
      for (size_t from = std::max(begin, first); from < rows[r].visible(); from += attention_chunk) {
        const size_t run_count = find_runs(shape, kv_head, rows[r], from, std::min(from + attention_chunk, rows[r].visible()), scratch, runs);
        attend_chunk(kernels, shape, runs, run_count, from, rows, r * heads_per_row, heads_per_row, value_stride, scratch);
      }
    }
  }
  for (size_t i = 0; i < vectors; ++i) {
    float* to = out + i / heads_per_row * shape.heads * dims + kv_head * width + i % heads_per_row * dims;
    for (size_t d = 0; d < dims; ++d) to[d] = scratch.out[i * value_stride + d] / scratch.sum[i];
  }
}

}  // namespace borrador
