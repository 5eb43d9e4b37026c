#include "transformer.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace borrador {

namespace {

constexpr size_t piece_bytes = 65536;  // weights a thread takes at a time
constexpr size_t many_rows = 32;
constexpr size_t many_rows_piece_bytes = 1 << 19;  // which tiles of activations come back to, in the second cache level
constexpr size_t blocks_per_piece = 2;  // of activations that a thread takes at a time
constexpr size_t few_blocks = 8;        // of activations, that are not worth waking the threads for

size_t round_up(size_t count, size_t unit) { return (count + unit - 1) / unit * unit; }

PageBuffer floats(size_t count) { return {count * sizeof(float), PageBuffer::Pages::normal}; }

}  // namespace

std::shared_ptr<SharedPool> shared_pool(size_t threads) {
  static std::mutex lock;
  static std::map<size_t, std::weak_ptr<SharedPool>> pools;
  std::lock_guard guard(lock);
  auto pool = pools[threads].lock();
  if (!pool) pools[threads] = pool = std::make_shared<SharedPool>(threads);
  return pool;
}

Transformer::Transformer(const ModelShape& shape, size_t arena_bytes, size_t threads, Isa isa)
    : shape_(shape), kernels_(kernels_for(isa)), threads_(shared_pool(std::max<size_t>(threads, 1))),
      cache_pool_(std::make_shared<KvPool>(shape.kv_shape().chunk_bytes())), arena_(arena_bytes, PageBuffer::Pages::huge),
      layers_(shape.layers.size()), scratch_(threads_->pool.size()), best_(threads_->pool.size()) {
  if (shape.head_dim > most_head_dim) throw std::invalid_argument("heads of more than 1024 elements");
  if (shape.experts_used > shape.experts) throw std::invalid_argument("more experts are used than there are");
  const size_t queries = round_up(shape.heads * shape.head_dim, lanes), keys = round_up(shape.kv_heads * shape.head_dim, lanes);
  const size_t width = round_up(shape.width, lanes), ffn = round_up(shape.ffn_width, lanes);
  const size_t ffn_rows = slice_limit * std::max<size_t>(shape.experts_used, 1);
  state_ = floats(slice_limit * width);
  normed_ = floats(slice_limit * width);
  delta_ = floats(slice_limit * width);
  query_ = floats(slice_limit * queries);
  query_integers_ = PageBuffer(slice_limit * shape.heads * KvShape::padded_key(shape.head_dim) * sizeof(int16_t), PageBuffer::Pages::normal);
  query_units_ = floats(slice_limit * shape.heads);
  attended_ = floats(slice_limit * queries);
  key_ = floats(slice_limit * keys);
  value_ = floats(slice_limit * keys);
  gate_ = floats(ffn_rows * ffn);
  up_ = floats(ffn_rows * ffn);
  mixed_ = floats(ffn_rows * ffn);
  rope_ = floats(slice_limit * shape.ropes.size() * shape.rope_dim);
  if (shape.experts) {
    router_ = floats(slice_limit * round_up(shape.experts, lanes));
    gathered_ = floats(ffn_rows * width);
    for (Layer& layer : layers_) layer.experts.resize(shape.experts);
  }
  const size_t most_blocks = activation_blocks(std::max({shape.width, shape.ffn_width, queries}));
  activations_ = PageBuffer(ffn_rows * most_blocks * activation_bytes_per_row_block, PageBuffer::Pages::normal);
}

void Transformer::forward(const PassRows& rows) {
  check(rows);
  std::lock_guard guard(threads_->pass);
  plan_rows(rows);
  choose_heads(rows);
  if (rows.best.count) best_.begin_pass(rows.best, rows.logit_rows.size());
  else logits_.resize(rows.logit_rows.size() * logits_stride());
  hidden_.resize(rows.logit_rows.size() * shape_.width);
  begin_pass(rows);
  for (size_t begin = 0; begin < rows.tokens.size(); begin += slice_limit)
    forward_slice(rows, begin, std::min(begin + slice_limit, rows.tokens.size()));
}

void Transformer::check(const PassRows& rows) const {
  const size_t count = rows.tokens.size();
  if (rows.parents.size() != count || rows.cache_of_row.size() != count) throw std::invalid_argument("rows differ in length");
  std::vector<size_t> taken(rows.caches.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    const auto cache = size_t(rows.cache_of_row[i]);
    if (cache >= rows.caches.size()) throw std::invalid_argument("row of an unknown cache");
    if (rows.tokens[i] < 0 || size_t(rows.tokens[i]) >= shape_.vocabulary) throw std::invalid_argument("token outside the vocabulary");
    const int32_t parent = rows.parents[i];
    if (parent < -1 || parent >= int32_t(i) || (parent >= 0 && rows.cache_of_row[size_t(parent)] != rows.cache_of_row[i]))
      throw std::invalid_argument("a parent must come before its row, in the same sequence");
    if (&rows.caches[cache]->pool() != cache_pool_.get()) throw std::invalid_argument("a cache of another model");
    if (rows.caches[cache]->length() + ++taken[cache] > rows.caches[cache]->capacity()) throw std::length_error("the cache is full");
  }
  for (const int32_t row : rows.logit_rows)
    if (row < 0 || size_t(row) >= count) throw std::invalid_argument("logits of an unknown row");
  const BestWanted& best = rows.best;
  if (best.count > BestTokens::most || (best.count && (best.within < 1 || best.within > shape_.vocabulary)))
    throw std::invalid_argument("the best of no token, or of more than there are");
  if (!rows.heads.empty()) check_heads(rows);
}

void Transformer::check_heads(const PassRows& rows) const {
  std::vector<uint8_t> served(rows.logit_rows.size(), 0);
  for (const auto& [head, served_by_it] : rows.heads) {
    if (served_by_it.size() != served.size()) throw std::invalid_argument("rows differ in length");
    if (head && !head->belongs_to(output_matrix())) throw std::invalid_argument("a short head of another model");
    if (head && rows.best.count && head->largest_token() >= int32_t(rows.best.within))
      throw std::invalid_argument("a short head has tokens beyond the limit");
    if (head && head->tokens().empty()) continue;
    for (size_t row = 0; row < served.size(); ++row) served[row] |= served_by_it[row];
  }
  if (std::find(served.begin(), served.end(), 0) != served.end()) throw std::invalid_argument("short heads of no token");
}

void Transformer::plan_rows(const PassRows& rows) {
  views_.resize(rows.tokens.size());
  std::vector<size_t> taken(rows.caches.size(), 0);
  for (size_t i = 0; i < rows.tokens.size(); ++i) {
    const auto index = size_t(rows.cache_of_row[i]);
    KvCache* cache = rows.caches[index];
    RowView& view = views_[i];
    view.cache = cache;
    view.slot = cache->length() + taken[index]++;
    const RowView* parent = rows.parents[i] < 0 ? nullptr : &views_[size_t(rows.parents[i])];
    view.position = parent ? parent->position + 1 : cache->length();
    view.branch.clear();
    if (view.slot == view.position && (!parent || parent->branch.empty())) continue;
    if (parent && parent->branch.empty())
      for (size_t slot = cache->length(); slot <= parent->slot; ++slot) view.branch.push_back(uint32_t(slot));
    else if (parent) view.branch = parent->branch;
    view.branch.push_back(uint32_t(view.slot));
  }
}

// Finds room for the keys and values of all rows before any cache changes.
void Transformer::begin_pass(const PassRows& rows) {
  std::vector<size_t> counts(rows.caches.size(), 0);
  for (const int32_t cache : rows.cache_of_row) ++counts[size_t(cache)];
  size_t missing = 0;
  for (size_t i = 0; i < counts.size(); ++i) missing += rows.caches[i]->missing(counts[i]);
  std::vector<KvChunk> chunks = cache_pool_->take(missing);
  for (size_t i = 0; i < counts.size(); ++i) rows.caches[i]->begin_pass(counts[i], chunks);
}

void Transformer::forward_slice(const PassRows& rows, size_t begin, size_t end) {
  slice_begin_ = begin;
  slice_rows_ = end - begin;
  pending_norm_ = nullptr;
  tiles_.clear();
  longest_past_ = 0;
  for (size_t i = begin; i < end; ++i) longest_past_ = std::max(longest_past_, views_[i].visible());
  make_tiles(views_.data() + begin, slice_rows_, rows_attended_together(), tiles_);
  embed(rows, begin);
  rotate_tables();
  for (size_t i = 0; i < layers_.size(); ++i) {
    attention_block(i);
    if (shape_.experts) expert_block(layers_[i]);
    else ffn_block(layers_[i]);
  }
  output_block(rows, begin);
}

void Transformer::embed(const PassRows& rows, size_t begin) {
  threads_->pool.for_range(slice_rows_, 4, [&](size_t from, size_t to, size_t) {
    for (size_t i = from; i < to; ++i) {
      float* state = state_.as<float>() + i * shape_.width;
      embedding_.row(size_t(rows.tokens[begin + i]), state);
      for (size_t d = 0; d < shape_.width; ++d) state[d] *= shape_.embedding_scale;
    }
  });
}

// Calls body(tile, first, last) for pieces of the blocks of activations of `columns`, for all tiles of rows.
template <class Body>
void Transformer::for_pieces(size_t columns, size_t rows, Body&& body) {
  const size_t blocks = activation_blocks(columns), pieces = (blocks + blocks_per_piece - 1) / blocks_per_piece;
  const size_t tiles = (rows + kernels_.tile_rows - 1) / kernels_.tile_rows, items = tiles * pieces;
  threads_->pool.for_range(items, blocks * rows <= few_blocks ? items : 1, [&](size_t from, size_t to, size_t) {
    for (size_t item = from; item < to; ++item) {
      const size_t first = item % pieces * blocks_per_piece;
      body(item / pieces, first, std::min(blocks, first + blocks_per_piece));
    }
  });
}

void Transformer::ffn_block(const Layer& layer) {
  const size_t width = shape_.ffn_width, stride = layer.gate.padded_rows();
  const Job projections[] = {{&layer.gate, gate_.as<float>(), slice_rows_}, {&layer.up, up_.as<float>(), slice_rows_}};
  normalise_rows(layer.ffn_norm, layer.gate.quantised() || layer.up.quantised());
  multiply(projections, normed_.as<float>());
  const bool quantised = layer.down.quantised();
  for_pieces(width, slice_rows_, [&](size_t tile, size_t first, size_t last) {
    const size_t begin = first * block_groups * group, end = std::min(width, last * block_groups * group);
    const size_t last_row = std::min((tile + 1) * kernels_.tile_rows, slice_rows_);
    for (size_t row = tile * kernels_.tile_rows; row < last_row && begin < end; ++row)
      activation()(gate_.as<float>() + row * stride + begin, up_.as<float>() + row * stride + begin, end - begin,
                   mixed_.as<float>() + row * width + begin);
    if (quantised) quantise_tile(kernels_, mixed_.as<float>(), width, tile, slice_rows_, first, last, activations_.data());
  });
  const Job output[] = {{&layer.down, delta_.as<float>(), slice_rows_}};
  multiply(output, mixed_.as<float>());
  pending_norm_ = &layer.post_ffn_norm;
}

// A row's output of the last block, normed where the block has a norm behind it.
float* Transformer::finish_delta(float* delta) const {
  if (!pending_norm_->empty()) kernels_.rms_norm(delta, pending_norm_->data(), shape_.width, shape_.norm_epsilon, delta);
  return delta;
}

// Takes up the last block's output, then writes the norm of every row, quantised where the next matrices ask for it.
void Transformer::normalise_rows(const std::vector<float>& weight, bool quantised) {
  const size_t width = shape_.width, stride = round_up(width, lanes);
  threads_->pool.for_range(slice_rows_, 1, [&](size_t from, size_t to, size_t) {
    for (size_t row = from; row < to; ++row) {
      float *state = state_.as<float>() + row * width, *normed = normed_.as<float>() + row * width;
      if (pending_norm_) kernels_.add(state, finish_delta(delta_.as<float>() + row * stride), width);
      kernels_.rms_norm(state, weight.data(), width, shape_.norm_epsilon, normed);
    }
  });
  if (quantised) quantise_rows(normed_.as<float>(), width, slice_rows_);
}

void Transformer::quantise_rows(const float* values, size_t columns, size_t rows) {
  for_pieces(columns, rows, [&](size_t tile, size_t first, size_t last) {
    quantise_tile(kernels_, values, columns, tile, rows, first, last, activations_.data());
  });
}

// What a matrix is multiplied with: rows from `first` on, of the values or of what they were quantised to.
const uint8_t* Transformer::input_of(const Matrix& matrix, const float* values, size_t first) const {
  if (matrix.quantised()) return activations_.data() + first * activation_blocks(matrix.columns) * activation_bytes_per_row_block;
  return reinterpret_cast<const uint8_t*>(values + first * matrix.columns);
}

// Multiplies values with matrices of equal columns; the strips of all of them are one parallel loop.
void Transformer::multiply(std::span<const Job> jobs, const float* values) {
  size_t strips = 0, bytes = 0;
  for (const Job& job : jobs) strips += job.matrix->strips(), bytes += job.matrix->bytes();
  const size_t fair = std::max<size_t>(1, strips / (threads() * 4));
  const size_t wanted = slice_rows_ > many_rows ? many_rows_piece_bytes : piece_bytes;
  const size_t grain = std::clamp<size_t>(wanted / std::max<size_t>(1, bytes / strips), 1, fair);
  threads_->pool.for_range(strips, grain, [&](size_t from, size_t to, size_t) {
    size_t first = 0;
    for (const Job& job : jobs) {
      const Matrix& m = *job.matrix;
      const size_t begin = std::max(from, first), end = std::min(to, first + m.strips());
      if (begin < end)
        kernels_.matmul(m.format, m.data, m.blocks_per_strip(), begin - first, end - first, input_of(m, values, job.first), job.rows, job.out,
                        m.padded_rows());
      first += m.strips();
    }
  });
}

}  // namespace borrador
