#include "attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace borrador {

namespace {

constexpr float log2_e = 1.44269504f;  // scores are kept in base 2

// `count` positions of a chunk, from its position `begin` on, stored one behind the other.
struct Run {
  KvView stored;
  size_t begin, count;
};

struct Runs {
  Run run[2];
  size_t count = 0;

  void add(const KvView& stored, size_t begin, size_t length) { run[count++] = {stored, begin, length}; }
  const Run* begin() const { return run; }
  const Run* end() const { return run + count; }
};

size_t whole_vectors(size_t count) { return (count + lanes - 1) / lanes * lanes; }

// First position that a row's branch copy covers: the start of the block that holds the first uncommitted position.
size_t branch_start(const RowView& row) { return row.cache->length() / lanes * lanes; }

KvView branch_view(const KvCache& cache, AttentionScratch& scratch) {
  return {scratch.branch_keys.data(), scratch.branch_values.data(), scratch.branch_key_units.data(), scratch.branch_value_units.data(),
          cache.key_stride(), cache.value_stride()};
}

// Copies the block that the branch begins in and the branch itself, so that they lie in logical order.
void copy_branch(const AttentionShape& shape, size_t kv_head, const RowView& row, AttentionScratch& scratch) {
  const KvCache& cache = *row.cache;
  const size_t begin = branch_start(row), committed = cache.length(), padded = whole_vectors(row.visible() - begin);
  scratch.branch_keys.assign(padded * cache.key_stride(), 0);
  scratch.branch_values.assign(padded * cache.value_stride(), 0);
  scratch.branch_key_units.assign(padded, 0);
  scratch.branch_value_units.assign(padded, 0);
  const KvView copy = branch_view(cache, scratch);
  for (size_t position = begin; position < row.visible(); ++position) {
    const size_t slot = position < committed ? position : row.branch[position - committed];
    cache.view(shape.layer, kv_head, slot / attention_chunk).copy_slot(slot % attention_chunk, copy, position - begin);
  }
}

// The runs that hold positions [begin, end) for a row: the cache, then the branch copy.
Runs find_runs(const AttentionShape& shape, size_t kv_head, const RowView& row, size_t begin, size_t end, AttentionScratch& scratch) {
  const size_t border = row.branch.empty() ? end : std::clamp(branch_start(row), begin, end);
  Runs runs;
  if (begin < border) runs.add(row.cache->view(shape.layer, kv_head, begin / attention_chunk), 0, border - begin);
  if (border < end) runs.add(branch_view(*row.cache, scratch).from(border - branch_start(row)), border - begin, end - border);
  return runs;
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

TileAttention::TileAttention(const KernelTable& kernels, const AttentionShape& shape, const RowView* rows, size_t count, const Queries& queries,
                             size_t first_row, float* out)
    : kernels_(kernels), shape_(shape), rows_(rows), count_(count), queries_(queries), first_row_(first_row), out_(out),
      heads_per_row_(shape.heads / shape.kv_heads), vectors_(count * heads_per_row_), key_stride_(rows[0].cache->key_stride()),
      value_stride_(rows[0].cache->value_stride()) {
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

void TileAttention::prepare(AttentionScratch& scratch) const {
  scratch.dots.resize(vectors_ * attention_chunk);
  scratch.weights.resize(vectors_ * attention_chunk);
  scratch.products.resize(vectors_ * value_stride_);
  scratch.key_units.resize(attention_chunk);
  scratch.value_units.resize(attention_chunk);
}

// `count` query vectors, `first` of the tile on, against positions [begin, end) of a chunk, found where `past` has them.
void TileAttention::compute(size_t kv_head, const RowView& past, size_t begin, size_t end, size_t first, size_t count, const Results& results,
                            AttentionScratch& scratch) const {
  const size_t query = (kv_head * queries_.rows + first_row_) * heads_per_row_ + first;
  const Runs runs = find_runs(shape_, kv_head, past, begin, end, scratch);
  for (const Run& run : runs) {
    const size_t padded = whole_vectors(run.count);
    const DotTerms terms{.pairs = key_stride_ / 2,
                         .stride = 2 * lanes,
                         .block_stride = lanes * key_stride_,
                         .factor_stride = key_stride_,
                         .next = run.stored.values,
                         .next_bytes = padded * value_stride_ * sizeof(int16_t)};
    kernels_.dots(terms, run.stored.keys, padded / lanes, queries_.values + query * key_stride_, count, scratch.dots.data() + run.begin,
                  attention_chunk, false);
    std::memcpy(scratch.key_units.data() + run.begin, run.stored.key_units, padded * sizeof(float));
    std::memcpy(scratch.value_units.data() + run.begin, run.stored.value_units, padded * sizeof(float));
  }
  weigh(begin, end, first, count, queries_.units + query, results, scratch);
  const size_t next_positions = end < most_visible_ ? std::min(attention_chunk, most_visible_ - end) : 0;
  for (const Run& run : runs) {
    const DotTerms terms{.pairs = whole_vectors(run.count) / 2,
                         .stride = 2 * value_stride_,
                         .block_stride = 2 * lanes,
                         .factor_stride = attention_chunk,
                         .next = next_positions ? past.cache->view(shape_.layer, kv_head, end / attention_chunk).keys : nullptr,
                         .next_bytes = next_positions * key_stride_ * sizeof(int16_t)};
    kernels_.dots(terms, run.stored.values, value_stride_ / lanes, scratch.weights.data() + run.begin, count, scratch.products.data(), value_stride_,
                  run.begin > 0);
  }
  for (size_t i = 0; i < count; ++i)
    kernels_.scale_dots(scratch.products.data() + i * value_stride_, results.unit[i], value_stride_, results.out + i * value_stride_);
}

// The softmax of each vector's scores.
void TileAttention::weigh(size_t begin, size_t end, size_t first, size_t count, const float* query_units, const Results& results,
                          AttentionScratch& scratch) const {
  const size_t padded = whole_vectors(end - begin);
  for (size_t i = 0; i < count; ++i) {
    const Seen seen = seen_in_chunk(shape_, rows_[(first + i) / heads_per_row_], begin, end - begin);
    int16_t* weights = scratch.weights.data() + i * attention_chunk;
    results.sum[i] = results.unit[i] = 0;
    if (seen.begin >= seen.end) {
      std::fill_n(weights, padded, int16_t{0});
      continue;
    }
    const ChunkScores scores{.dots = scratch.dots.data() + i * attention_chunk,
                             .key_units = scratch.key_units.data(),
                             .value_units = scratch.value_units.data(),
                             .query_unit = query_units[i] * log2_e,
                             .soft_cap = shape_.soft_cap * log2_e,
                             .begin = seen.begin,
                             .end = seen.end,
                             .padded = padded};
    const ChunkWeights found = kernels_.weigh_chunk(scores, weights);
    results.maximum[i] = found.maximum, results.sum[i] = found.sum, results.unit[i] = found.unit;
  }
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
  prepare(scratch);
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
  prepare(scratch);
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
