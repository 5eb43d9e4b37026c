// Part of Transformer: a layer's attention, from the norm before it to the sum that the residual stream takes up.
#include <algorithm>
#include <limits>

#include "transformer.h"

namespace borrador {

namespace {

constexpr size_t fair_items = 4;      // of attention for each thread
constexpr size_t long_past = 1024;    // positions from which chunks are spread over the threads where items are few
constexpr size_t few_heads = 32;      // of all rows, that are not worth waking the threads for
constexpr size_t attention_rows = 8;  // rows of one sequence that are attended together

}  // namespace

// Fewer where there would be too little for every thread to do. Long pasts are read once for all rows, and spread over the
// threads by chunks.
size_t Transformer::rows_attended_together() const {
  size_t rows = attention_rows;
  while (rows > 2 && longest_past_ < long_past && (slice_rows_ + rows - 1) / rows * shape_.kv_heads < fair_items * threads()) rows /= 2;
  return rows;
}

// Cosines and sines of every row's angles, for each of the ropes.
void Transformer::rotate_tables() {
  for (size_t row = 0; row < slice_rows_; ++row) {
    const RowView& view = views_[slice_begin_ + row];
    const bool long_cache = !long_frequencies_.empty() && view.cache->capacity() > shape_.rope_short_context;
    for (size_t rope = 0; rope < frequencies_.size(); ++rope) {
      const auto& frequencies = long_cache && rope == 0 ? long_frequencies_ : frequencies_[rope];
      rope_table(frequencies, view.position, shape_.rope_magnitude, rope_.as<float>() + (row * frequencies_.size() + rope) * shape_.rope_dim);
    }
  }
}

void Transformer::attention_block(size_t index) {
  const Layer& layer = layers_[index];
  const Job projections[] = {
      {&layer.query, query_.as<float>(), slice_rows_}, {&layer.key, key_.as<float>(), slice_rows_}, {&layer.value, value_.as<float>(), slice_rows_}};
  normalise_rows(layer.attention_norm, layer.query.quantised() || layer.key.quantised() || layer.value.quantised());
  multiply(projections, normed_.as<float>());
  position_heads(index);
  attend_rows(index);
  if (layer.attention_output.quantised()) quantise_rows(attended_.as<float>(), layer.attention_output.columns, slice_rows_);
  const Job output[] = {{&layer.attention_output, delta_.as<float>(), slice_rows_}};
  multiply(output, attended_.as<float>());
  pending_norm_ = &layer.post_attention_norm;
}

// Threads take heads apart, not rows: the keys of neighbouring slots share cache lines.
void Transformer::position_heads(size_t index) {
  const size_t items = shape_.kv_heads + shape_.heads;
  threads_->pool.for_range(items, items * slice_rows_ <= few_heads ? items : 1, [&](size_t from, size_t to, size_t) {
    for (size_t item = from; item < to; ++item) {
      for (size_t row = 0; row < slice_rows_; ++row) {
        if (item < shape_.kv_heads) position_key_value(index, item, row);
        else position_query(index, item - shape_.kv_heads, row);
      }
    }
  });
}

void Transformer::position_query(size_t index, size_t head, size_t row) {
  const Layer& layer = layers_[index];
  const size_t dims = shape_.head_dim;
  float* query = query_.as<float>() + row * layer.query.padded_rows() + head * dims;
  if (!layer.query_bias.empty()) kernels_.add(query, layer.query_bias.data() + head * dims, dims);
  position_head(query, layer.query_norm, rope_table_of(index, row));
  const size_t shared = shape_.heads / shape_.kv_heads, at = (head / shared * slice_rows_ + row) * shared + head % shared;
  const float unit = kernels_.to_int16(query, dims, most_key, most_key_norm, query_integers_.as<int16_t>() + at * KvShape::padded_key(dims));
  query_units_.as<float>()[at] = unit * shape_.attention_scale;
}

// Key and value of one head and row go into the cache.
void Transformer::position_key_value(size_t index, size_t head, size_t row) {
  const Layer& layer = layers_[index];
  const size_t dims = shape_.head_dim;
  float* key = key_.as<float>() + row * layer.key.padded_rows() + head * dims;
  float* value = value_.as<float>() + row * layer.value.padded_rows() + head * dims;
  if (!layer.key_bias.empty()) kernels_.add(key, layer.key_bias.data() + head * dims, dims);
  if (!layer.value_bias.empty()) kernels_.add(value, layer.value_bias.data() + head * dims, dims);
  position_head(key, layer.key_norm, rope_table_of(index, row));
  int16_t keys[most_head_dim], values[most_head_dim];
  const float key_unit = kernels_.to_int16(key, dims, most_key, most_key_norm, keys);
  const float value_unit = kernels_.to_int16(value, dims, most_value, std::numeric_limits<float>::infinity(), values);
  const RowView& view = views_[slice_begin_ + row];
  view.cache->store(index, head, view.slot, keys, key_unit, values, value_unit);
}

// The cosines and sines that turn a row's heads in a layer; null where the layer turns none.
const float* Transformer::rope_table_of(size_t index, size_t row) const {
  const int32_t rope = shape_.layers[index].rope;
  return rope < 0 ? nullptr : rope_.as<float>() + (row * frequencies_.size() + size_t(rope)) * shape_.rope_dim;
}

// Norm and rotation of one head, each where the layer has it.
void Transformer::position_head(float* head, const std::vector<float>& norm, const float* table) const {
  if (!norm.empty()) kernels_.rms_norm(head, norm.data(), norm.size(), shape_.norm_epsilon, head);
  if (table) rotate(head, table, shape_.rope_dim / 2, shape_.rope_interleaved);
}

void Transformer::attend_rows(size_t index) {
  const AttentionShape shape{index, shape_.heads, shape_.kv_heads, shape_.head_dim, shape_.layers[index].window, shape_.attention_soft_cap};
  const size_t heads = shape_.kv_heads, width = shape_.heads * shape_.head_dim;
  const Queries queries{query_integers_.as<int16_t>(), query_units_.as<float>(), slice_rows_};
  std::vector<TileAttention>& tiles = tile_attentions_;
  tiles.clear();
  for (const RowTile& tile : tiles_)
    tiles.emplace_back(kernels_, shape, views_.data() + slice_begin_ + tile.begin, tile.end - tile.begin, queries, tile.begin,
                       attended_.as<float>() + tile.begin * width);
  const bool ahead = longest_past_ >= long_past && tiles.size() * heads < fair_items * threads() && plan_ahead();
  if (ahead)
    threads_->pool.for_range(ahead_items_.size(), 1, [&](size_t from, size_t to, size_t thread) {
      for (size_t i = from; i < to; ++i) {
        const AheadItem& item = ahead_items_[i];
        tiles[item.tile].compute_ahead(item.kv_head, item.chunk, chunk_results_.data() + item.place, scratch_[thread]);
      }
    });
  threads_->pool.for_range(tiles.size() * heads, 1, [&](size_t from, size_t to, size_t thread) {
    for (size_t i = from; i < to; ++i)
      tiles[i / heads].attend(i % heads, ahead ? chunk_results_.data() + ahead_begin_[i] : nullptr, scratch_[thread]);
  });
}

// Lists the chunks that threads can compute ahead, where each tile and head has several of them.
bool Transformer::plan_ahead() {
  ahead_items_.clear();
  ahead_begin_.clear();
  size_t place = 0;
  for (size_t tile = 0; tile < tile_attentions_.size(); ++tile) {
    const TileAttention& attention = tile_attentions_[tile];
    if (attention.chunks_ahead() < 2) return false;
    for (size_t head = 0; head < shape_.kv_heads; ++head) {
      ahead_begin_.push_back(place);
      for (size_t chunk = 0; chunk < attention.chunks_ahead(); ++chunk, place += attention.result_floats())
        ahead_items_.push_back({tile, head, chunk, place});
    }
  }
  chunk_results_.resize(place);
  return true;
}

}  // namespace borrador
