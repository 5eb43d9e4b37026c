// Loading: where tensors go, whether all of them came, and what a pass reads of them.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "transformer.h"

namespace borrador {

namespace {

// A number in decimal, or SIZE_MAX.
size_t parse_number(std::string_view text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : SIZE_MAX;
}

}  // namespace

Matrix& Transformer::matrix_slot(int layer, std::string_view name) {
  static const std::unordered_map<std::string_view, Matrix Layer::*> in_layer = {
      {"attn_q", &Layer::query},   {"attn_k", &Layer::key},    {"attn_v", &Layer::value},    {"attn_output", &Layer::attention_output},
      {"ffn_gate", &Layer::gate},  {"ffn_up", &Layer::up},     {"ffn_down", &Layer::down},   {"ffn_gate_inp", &Layer::router},
  };
  static const std::unordered_map<std::string_view, Matrix FeedForward::*> in_expert = {
      {"ffn_gate", &FeedForward::gate}, {"ffn_up", &FeedForward::up}, {"ffn_down", &FeedForward::down}};
  if (layer < 0 && name == "token_embd") return embedding_;
  if (layer < 0 && name == "output") return output_;
  if (const auto found = in_layer.find(name); found != in_layer.end() && layer >= 0 && size_t(layer) < layers_.size())
    return layers_[size_t(layer)].*found->second;
  if (const size_t dot = name.find('.'); dot != name.npos && layer >= 0 && size_t(layer) < layers_.size()) {
    const auto found = in_expert.find(name.substr(0, dot));
    const size_t expert = parse_number(name.substr(dot + 1));
    if (found != in_expert.end() && expert < shape_.experts) return layers_[size_t(layer)].experts[expert].*found->second;
  }
  throw std::invalid_argument("unknown matrix " + std::string(name));
}

std::vector<float>& Transformer::vector_slot(int layer, std::string_view name) {
  static const std::unordered_map<std::string_view, std::vector<float> Layer::*> in_layer = {
      {"attn_norm", &Layer::attention_norm}, {"ffn_norm", &Layer::ffn_norm},      {"attn_q.bias", &Layer::query_bias},
      {"attn_k.bias", &Layer::key_bias},     {"attn_v.bias", &Layer::value_bias},  {"attn_q_norm", &Layer::query_norm},
      {"attn_k_norm", &Layer::key_norm},     {"post_attention_norm", &Layer::post_attention_norm},
      {"post_ffw_norm", &Layer::post_ffn_norm},
  };
  if (layer < 0 && name == "output_norm") return output_norm_;
  if (layer < 0 && (name == "rope_freqs" || name == "rope_factors_short")) return rope_divisors_;
  if (layer < 0 && name == "rope_factors_long") return rope_long_divisors_;
  if (const auto found = in_layer.find(name); found != in_layer.end() && layer >= 0 && size_t(layer) < layers_.size())
    return layers_[size_t(layer)].*found->second;
  throw std::invalid_argument("unknown vector " + std::string(name));
}

void Transformer::load_matrix(int layer, std::string_view name, Format stored, Format kept, size_t rows, size_t columns, std::span<const uint8_t> source) {
  if (!can_repack(stored, kept, columns) || gguf_bytes(stored, rows, columns) != source.size())
    throw std::invalid_argument("wrong size or format of matrix " + std::string(name));
  Matrix matrix{kept, rows, columns, arena_.data() + arena_used_};
  const size_t bytes = (matrix.bytes() + 63) / 64 * 64;
  if (bytes > arena_.bytes() - arena_used_) throw std::invalid_argument("weights exceed the announced size");
  Matrix& slot = matrix_slot(layer, name);
  arena_used_ += bytes;
  std::lock_guard guard(threads_->pass);
  repack(source.data(), stored, matrix, threads_->pool);
  slot = matrix;
}

void Transformer::load_vector(int layer, std::string_view name, std::span<const float> values) { vector_slot(layer, name).assign(values.begin(), values.end()); }

void Transformer::finish_loading() {
  const size_t width = shape_.width, queries = shape_.heads * shape_.head_dim, keys = shape_.kv_heads * shape_.head_dim, ffn = shape_.ffn_width;
  const auto matrix = [](const Matrix& m, size_t rows, size_t columns) {
    if (!m.data || m.rows != rows || m.columns != columns) throw std::invalid_argument("a matrix is missing or has the wrong shape");
  };
  const auto feed_forward = [&](const FeedForward& f) {
    matrix(f.gate, ffn, width);
    matrix(f.up, ffn, width);
    matrix(f.down, width, ffn);
  };
  const auto vector = [](const std::vector<float>& v, size_t size, bool optional = false) {
    if (v.size() != size && !(optional && v.empty())) throw std::invalid_argument("a vector is missing or has the wrong size");
  };
  matrix(embedding_, shape_.vocabulary, width);
  if (output_.data) matrix(output_, shape_.vocabulary, width);
  vector(output_norm_, width);
  vector(rope_divisors_, shape_.rope_dim / 2, true);
  vector(rope_long_divisors_, shape_.rope_dim / 2, true);
  for (const Layer& layer : layers_) {
    vector(layer.attention_norm, width);
    vector(layer.ffn_norm, width);
    vector(layer.query_bias, queries, true);
    vector(layer.key_bias, keys, true);
    vector(layer.value_bias, keys, true);
    vector(layer.query_norm, shape_.head_dim, true);
    vector(layer.key_norm, shape_.head_dim, true);
    vector(layer.post_attention_norm, width, true);
    vector(layer.post_ffn_norm, width, true);
    matrix(layer.query, queries, width);
    matrix(layer.key, keys, width);
    matrix(layer.value, keys, width);
    matrix(layer.attention_output, width, queries);
    if (shape_.experts) matrix(layer.router, shape_.experts, width);
    else feed_forward({layer.gate, layer.up, layer.down});
    for (const FeedForward& expert : layer.experts) feed_forward(expert);
  }
  prepare_ropes();
}

void Transformer::prepare_ropes() {
  for (const LayerShape& layer : shape_.layers)
    if (layer.rope >= int32_t(shape_.ropes.size())) throw std::invalid_argument("a layer has an unknown rope");
  frequencies_.clear();
  for (const RopeShape& rope : shape_.ropes)
    frequencies_.push_back(rope_frequencies(rope, shape_.rope_dim, frequencies_.empty() ? rope_divisors_ : std::vector<float>{}));
  if (!rope_long_divisors_.empty()) long_frequencies_ = rope_frequencies(shape_.ropes[0], shape_.rope_dim, rope_long_divisors_);
}

template <class Count>
size_t Transformer::sum_over_weights(Count&& count) const {
  size_t sum = count(output_matrix());
  for (const Layer& layer : layers_) {
    for (const Matrix* m : {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.gate, &layer.up, &layer.down, &layer.router})
      sum += count(*m);
    if (shape_.experts) sum += shape_.experts_used * (count(layer.experts[0].gate) + count(layer.experts[0].up) + count(layer.experts[0].down));
  }
  return sum;
}

size_t Transformer::weights_bytes() const {
  return sum_over_weights([](const Matrix& m) { return m.bytes(); });
}

size_t Transformer::row_macs() const {
  return sum_over_weights([](const Matrix& m) { return m.rows * m.columns; });
}

double Transformer::integer_peak() const {
  using clock = std::chrono::steady_clock;
  constexpr size_t rounds = 200000, repeats = 20;
  double best = 0;
  std::lock_guard guard(threads_->pass);
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<int32_t> sink{0};
    const auto start = clock::now();
    threads_->pool.for_range(threads() * 8, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t part = begin; part < end; ++part) sink += kernels_.integer_peak(rounds / 8);
    });
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    best = std::max(best, double(threads() * (rounds / 8) * 8 * peak_macs) / seconds);
  }
  return best;
}

}  // namespace borrador
