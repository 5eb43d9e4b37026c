// The steps of attention: integer dot products, softmax of a chunk, folding chunks. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"
#include "row_steps.h"

namespace borrador {
namespace {

// Fetches memory a few cache lines at a time.
template <class S>
class Fetcher {
 public:
  // In about so many steps.
  Fetcher(const DotTerms& terms, size_t steps)
      : at_(reinterpret_cast<const uint8_t*>(terms.next)), end_(at_ + terms.next_bytes), step_((terms.next_bytes / line + steps - 1) / steps * line) {}

  void step() {
    const uint8_t* until = std::min(at_ + step_, end_);
    for (; at_ < until; at_ += line) S::prefetch(at_);
  }

 private:
  static constexpr size_t line = 64;
  const uint8_t *at_, *end_;
  size_t step_;
};

// One tile of `dots`: sums stay in registers while the terms pass by.
template <class S, int Vectors, int Blocks>
void dots_tile(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, int32_t* out, size_t out_stride, bool accumulate) {
  typename S::I32 sum[Blocks][Vectors];
  for (int b = 0; b < Blocks; ++b)
    for (int i = 0; i < Vectors; ++i) sum[b][i] = accumulate ? S::load_i32(out + i * out_stride + b * lanes) : S::zero_i32();
  for (size_t t = 0; t < terms.pairs; ++t) {
    typename S::I16 row[Blocks];
    for (int b = 0; b < Blocks; ++b) row[b] = S::load_i16(matrix + b * terms.block_stride + t * terms.stride);
    for (int i = 0; i < Vectors; ++i) {
      const auto pair = S::broadcast_pair(factor + i * terms.factor_stride + 2 * t);
      for (int b = 0; b < Blocks; ++b) sum[b][i] = S::dot2(sum[b][i], row[b], pair);
    }
  }
  for (int b = 0; b < Blocks; ++b)
    for (int i = 0; i < Vectors; ++i) S::store_i32(out + i * out_stride + b * lanes, sum[b][i]);
}

template <class S, int Most, int Blocks>
void dots_any(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, size_t vectors, int32_t* out, size_t out_stride, bool accumulate) {
  if (vectors >= Most) return dots_tile<S, Most, Blocks>(terms, matrix, factor, out, out_stride, accumulate);
  if constexpr (Most > 1) dots_any<S, Most - 1, Blocks>(terms, matrix, factor, vectors, out, out_stride, accumulate);
}

// All vectors against `Blocks` blocks, which stay in the nearest cache meanwhile.
template <class S, int Blocks>
void dots_blocks(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, size_t vectors, int32_t* out, size_t out_stride, bool accumulate) {
  constexpr int most = std::max(1, S::dot_sums / Blocks);
  for (size_t i = 0; i < vectors; i += most)
    dots_any<S, most, Blocks>(terms, matrix, factor + i * terms.factor_stride, vectors - i, out + i * out_stride, out_stride, accumulate);
}

template <class S>
void dots(const DotTerms& terms, const int16_t* matrix, size_t blocks, const int16_t* factor, size_t vectors, int32_t* out, size_t out_stride,
          bool accumulate) {
  constexpr int together = S::dot_sums >= 16 ? 2 : 1;
  size_t b = 0;
  for (; b + together <= blocks; b += together)
    dots_blocks<S, together>(terms, matrix + b * terms.block_stride, factor, vectors, out + b * lanes, out_stride, accumulate);
  for (; b < blocks; ++b) dots_blocks<S, 1>(terms, matrix + b * terms.block_stride, factor, vectors, out + b * lanes, out_stride, accumulate);
}

template <class S>
void scale_dots(const int32_t* dots, float unit, size_t count, float* out) {
  for (size_t i = 0; i < count; i += lanes) S::store(out + i, S::mul(S::to_f32(S::load_i32(dots + i)), S::set(unit)));
}

// Integers of at most `most` in magnitude whose norm is at most `most_norm`, up to rounding, and the unit they count.
template <class S>
float to_int16(const float* x, size_t count, float most, float most_norm, int16_t* out) {
  auto magnitude = S::zero_f32(), squares = S::zero_f32();
  for (size_t i = 0; i < count; i += lanes) {
    const auto v = load_some<S>(x + i, count - i);
    magnitude = S::max(S::abs(v), magnitude);  // a not-a-number is passed over
    squares = S::fma(v, v, squares);
  }
  const float unit = std::max(S::largest(magnitude) / most, std::sqrt(sum_of<S>(squares)) / most_norm);
  const auto inverse = S::set(unit > 0 ? 1.0f / unit : 0.0f), highest = S::set(most), lowest = S::set(-most);
  for (size_t i = 0; i < count; i += lanes) {
    int16_t values[lanes];
    S::store_i16(values, S::round(S::min(S::max(S::mul(load_some<S>(x + i, count - i), inverse), lowest), highest)));
    std::memcpy(out + i, values, std::min(lanes, count - i) * sizeof(int16_t));
  }
  return unit;
}

// 2^x for x <= 0; below -126 the result is the smallest normal number. The polynomial of the fraction, at most 1/2 in
// magnitude, is a minimax fit with a relative error of 1e-7 and gives 1 for 0 exactly.
template <class S>
typename S::F32 power_of_two_below_one(typename S::F32 x) {
  x = S::max(x, S::set(-126.0f));
  const auto n = S::round(x);
  const auto r = S::sub(x, S::to_f32(n));
  auto p = S::set(1.3264727e-3f);
  p = S::fma(p, r, S::set(9.6715126e-3f));
  p = S::fma(p, r, S::set(5.5507337e-2f));
  p = S::fma(p, r, S::set(2.4022242e-1f));
  p = S::fma(p, r, S::set(6.9314698e-1f));
  p = S::fma(p, r, S::set(1.0f));
  return S::mul(p, S::power_of_two(n));
}

template <class S>
float scalar_power_of_two_below_one(float x) {
  float values[lanes];
  S::store(values, power_of_two_below_one<S>(S::set(x)));
  return values[0];
}

// Scores of whole vectors [first, last), and the largest of them.
template <class S>
float scale_scores(const ChunkScores& chunk, size_t first, size_t last, float* scores) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const auto scale = S::set(chunk.query_unit);
  auto most = S::set(nothing);
  for (size_t i = first; i < last; i += lanes) {
    const auto score = S::mul(S::to_f32(S::load_i32(chunk.dots + i)), S::mul(S::load(chunk.key_units + i), scale));
    S::store(scores + i, score);
    most = S::max(score, most);
  }
  if (chunk.soft_cap == 0 && first == chunk.begin && last == chunk.end) return S::largest(most);
  if (chunk.soft_cap != 0) soft_cap<S>(scores + first, last - first, chunk.soft_cap);
  std::fill(scores + first, scores + chunk.begin, nothing);
  std::fill(scores + chunk.end, scores + last, nothing);
  most = S::set(nothing);
  for (size_t i = first; i < last; i += lanes) most = S::max(S::load(scores + i), most);
  return S::largest(most);
}

template <class S>
ChunkWeights weigh_chunk(const ChunkScores& chunk, int16_t* weights) {
  const size_t first = chunk.begin / lanes * lanes, last = (chunk.end + lanes - 1) / lanes * lanes;
  float values[attention_chunk];
  const float maximum = scale_scores<S>(chunk, first, last, values);
  const auto highest = S::set(maximum);
  for (size_t i = first; i < last; i += lanes) S::store(values + i, power_of_two_below_one<S>(S::sub(S::load(values + i), highest)));
  std::fill(values + first, values + chunk.begin, 0.0f);
  std::fill(values + chunk.end, values + last, 0.0f);
  auto sum = S::zero_f32(), value_sum = S::zero_f32(), most = S::zero_f32();
  for (size_t i = first; i < last; i += lanes) {
    const auto weight = S::load(values + i), scaled = S::mul(weight, S::load(chunk.value_units + i));
    sum = S::add(sum, weight);
    value_sum = S::add(value_sum, scaled);
    most = S::max(scaled, most);
    S::store(values + i, scaled);
  }
  const float unit = std::max({least_weight_unit, S::largest(most) / most_weight, sum_of<S>(value_sum) / most_weight_sum});
  const auto inverse = S::set(1.0f / unit);
  std::fill(weights, weights + first, int16_t{0});
  for (size_t i = first; i < last; i += lanes)  // what is not a number becomes 0
    S::store_i16(weights + i, S::round(S::max(S::mul(S::load(values + i), inverse), S::zero_f32())));
  std::fill(weights + last, weights + chunk.padded, int16_t{0});
  return {maximum, sum_of<S>(sum), unit};
}

template <class S>
void fold_chunk(float* state_maximum, float* state_sum, float* state_out, float maximum, float sum, const float* out, size_t count) {
  const float most = std::max(*state_maximum, maximum);
  // The first chunk meets a state of sum 0, whose factor does not matter: 1 keeps the bits.
  const float before = *state_sum == 0.0f ? 1.0f : scalar_power_of_two_below_one<S>(*state_maximum - most);
  const float now = scalar_power_of_two_below_one<S>(maximum - most);
  *state_maximum = most;
  *state_sum = std::fma(*state_sum, before, sum * now);
  for (size_t i = 0; i < count; i += lanes) {
    const auto scaled = S::mul(S::load(out + i), S::set(now));
    S::store(state_out + i, S::fma(S::load(state_out + i), S::set(before), scaled));
  }
}

}  // namespace
}  // namespace borrador
