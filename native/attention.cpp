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

}  // namespace

void make_tiles(const RowView* rows, size_t count, size_t most, std::vector<RowTile>& out) {
  out.clear();
  for (size_t i = 0; i < count; ++i) {
    const bool joins = !out.empty() && rows[out.back().begin].cache == rows[i].cache && i - out.back().begin < most;
    if (joins) out.back().end = i + 1;
    else out.push_back({i, i + 1});
  }
}

TileAttention::TileAttention(const KernelTable& kernels, const AttentionShape& shape, const RowView* rows, size_t count, const float* queries,
                             size_t query_stride, float* out)
    : kernels_(kernels), shape_(shape), rows_(rows), count_(count), queries_(queries), query_stride_(query_stride), out_(out),
      heads_per_row_(shape.heads / shape.kv_heads), vectors_(count * heads_per_row_), value_stride_(rows[0].cache->value_stride()) {
  size_t first_visible = SIZE_MAX, straight_until = SIZE_MAX;
  for (size_t r = 0; r < count; ++r) {
    first_visible = std::min(first_visible, shape.first_visible(rows[r]));
    most_visible_ = std::max(most_visible_, rows[r].visible());
    if (!rows[r].branch.empty()) straight_until = std::min(straight_until, branch_start(rows[r]));
  }
  first_chunk_ = straight_end_ = first_visible / attention_chunk;
  const size_t chunks = (most_visible_ + attention_chunk - 1) / attention_chunk;
  while (straight_end_ < chunks && std::min((straight_end_ + 1) * attention_chunk, most_visible_) <= straight_until) ++straight_end_;
}

void TileAttention::gather_queries(size_t kv_head, AttentionScratch& scratch) const {
  const size_t width = heads_per_row_ * shape_.head_dim;
  scratch.query.resize(vectors_ * shape_.head_dim);
  scratch.scores.resize(vectors_ * attention_chunk);
  for (size_t r = 0; r < count_; ++r)
    std::memcpy(scratch.query.data() + r * width, queries_ + r * query_stride_ + kv_head * width, width * sizeof(float));
}

// `count` query vectors, `first` of the tile on, against positions [begin, end) of a chunk, found where `past` has them.
void TileAttention::compute(size_t kv_head, const RowView& past, size_t begin, size_t end, size_t first, size_t count, const Results& results,
                            AttentionScratch& scratch) const {
  const size_t dims = shape_.head_dim, padded = whole_vectors(end - begin);
  Run runs[2];
  const size_t run_count = find_runs(shape_, kv_head, past, begin, end, scratch, runs);
  float* scores = scratch.scores.data();
  for (size_t r = 0; r < run_count; ++r)
    kernels_.mix(runs[r].keys, lanes, lanes * dims, whole_vectors(runs[r].count) / lanes, dims, scratch.query.data() + first * dims, dims, count,
                 scores + (runs[r].begin - begin), attention_chunk, false);
  for (size_t i = 0; i < count; ++i) {
    const Seen seen = seen_in_chunk(shape_, rows_[(first + i) / heads_per_row_], begin, end - begin);
    float* row_scores = scores + i * attention_chunk;
    results.sum[i] = 0;
    if (seen.begin >= seen.end) {
      std::fill_n(row_scores, padded, 0.0f);
      continue;
    }
    if (shape_.soft_cap != 0) kernels_.soft_cap(row_scores, padded, shape_.soft_cap);
    kernels_.softmax_chunk(row_scores, seen.begin, seen.end, padded, &results.maximum[i], &results.sum[i]);
  }
  for (size_t r = 0; r < run_count; ++r)
    kernels_.mix(runs[r].values, value_stride_, lanes, value_stride_ / lanes, runs[r].count, scores + (runs[r].begin - begin), attention_chunk,
                 count, results.out, value_stride_, r > 0);
}

void TileAttention::fold(const Results& results, size_t first, size_t count, AttentionScratch& scratch) const {
  for (size_t i = 0; i < count; ++i) {
    if (results.sum[i] == 0) continue;  // nothing of the chunk was seen
    const size_t at = first + i;
    kernels_.fold_chunk(&scratch.maximum[at], &scratch.sum[at], scratch.out.data() + at * value_stride_, results.maximum[i], results.sum[i],
                        results.out + i * value_stride_, value_stride_);
  }
}

void TileAttention::compute_ahead(size_t kv_head, size_t chunk, float* results, AttentionScratch& scratch) const {
  gather_queries(kv_head, scratch);
  compute_straight(kv_head, chunk, results, scratch);
}

void TileAttention::compute_straight(size_t kv_head, size_t chunk, float* results, AttentionScratch& scratch) const {
  const RowView straight{rows_[0].cache, 0, 0, {}};
  const size_t begin = (first_chunk_ + chunk) * attention_chunk, end = std::min(begin + attention_chunk, most_visible_);
  compute(kv_head, straight, begin, end, 0, vectors_, results_at(results), scratch);
}

// The rest of a tree's rows: each has a past of its own behind the straight chunks.
void TileAttention::attend_branches(size_t kv_head, AttentionScratch& scratch) const {
  const Results results = results_at(scratch.chunk.data());
  for (size_t r = 0; r < count_; ++r) {
    const RowView& row = rows_[r];
    if (!row.branch.empty()) copy_branch(shape_, kv_head, row, scratch);
    const size_t first_chunk = std::max(straight_end_, shape_.first_visible(row) / attention_chunk), first = r * heads_per_row_;
    for (size_t begin = first_chunk * attention_chunk; begin < row.visible(); begin += attention_chunk) {
      compute(kv_head, row, begin, std::min(begin + attention_chunk, row.visible()), first, heads_per_row_, results, scratch);
      fold(results, first, heads_per_row_, scratch);
    }
  }
}

void TileAttention::attend(size_t kv_head, float* ahead, AttentionScratch& scratch) const {
  scratch.chunk.resize(result_floats());
  scratch.out.assign(vectors_ * value_stride_, 0.0f);
  scratch.maximum.assign(vectors_, -std::numeric_limits<float>::infinity());
  scratch.sum.assign(vectors_, 0.0f);
  gather_queries(kv_head, scratch);
  for (size_t chunk = 0; chunk < chunks_ahead(); ++chunk) {
    float* place = ahead ? ahead + chunk * result_floats() : scratch.chunk.data();
    if (!ahead) compute_straight(kv_head, chunk, place, scratch);
    fold(results_at(place), 0, vectors_, scratch);
  }
  if (straight_end_ * attention_chunk < most_visible_) attend_branches(kv_head, scratch);
  const size_t dims = shape_.head_dim, width = heads_per_row_ * dims;
  for (size_t i = 0; i < vectors_; ++i) {
    float* to = out_ + i / heads_per_row_ * shape_.heads * dims + kv_head * width + i % heads_per_row_ * dims;
    for (size_t d = 0; d < dims; ++d) to[d] = scratch.out[i * value_stride_ + d] / scratch.sum[i];
  }
}

}  // namespace borrador
