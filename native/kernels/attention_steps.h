// The steps of attention: weighted sums, softmax of a chunk, folding chunks. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"
#include "row_steps.h"

namespace borrador {
namespace {

template <class S, int Vectors, int Blocks>
void mix_tile(const uint16_t* matrix, size_t stride, size_t block_stride, size_t terms, const float* factor, size_t factor_stride, float* out,
              size_t out_stride, bool accumulate) {
  typename S::F32 sum[Blocks][Vectors];
  for (int b = 0; b < Blocks; ++b)
    for (int i = 0; i < Vectors; ++i) sum[b][i] = accumulate ? S::load(out + i * out_stride + b * lanes) : S::zero_f32();
  for (size_t t = 0; t < terms; ++t) {
    typename S::F32 row[Blocks];
    for (int b = 0; b < Blocks; ++b) row[b] = S::load_f16(matrix + b * block_stride + t * stride);
    for (int i = 0; i < Vectors; ++i) {
      const auto f = S::broadcast(factor + i * factor_stride + t);
      for (int b = 0; b < Blocks; ++b) sum[b][i] = S::fma(row[b], f, sum[b][i]);
    }
  }
  for (int b = 0; b < Blocks; ++b)
    for (int i = 0; i < Vectors; ++i) S::store(out + i * out_stride + b * lanes, sum[b][i]);
}

template <class S, int Vectors>
void mix_blocks(const uint16_t* matrix, size_t stride, size_t block_stride, size_t blocks, size_t terms, const float* factor,
                size_t factor_stride, float* out, size_t out_stride, bool accumulate) {
  constexpr int together = std::clamp(S::accumulators / Vectors, 1, 4);
  size_t b = 0;
  for (; b + together <= blocks; b += together)
    mix_tile<S, Vectors, together>(matrix + b * block_stride, stride, block_stride, terms, factor, factor_stride, out + b * lanes, out_stride,
                                   accumulate);
  for (; b < blocks; ++b)
    mix_tile<S, Vectors, 1>(matrix + b * block_stride, stride, block_stride, terms, factor, factor_stride, out + b * lanes, out_stride, accumulate);
}

template <class S, int Most>
void mix_any(size_t vectors, const uint16_t* matrix, size_t stride, size_t block_stride, size_t blocks, size_t terms, const float* factor,
             size_t factor_stride, float* out, size_t out_stride, bool accumulate) {
  if (vectors == Most) return mix_blocks<S, Most>(matrix, stride, block_stride, blocks, terms, factor, factor_stride, out, out_stride, accumulate);
  if constexpr (Most > 1)
    mix_any<S, Most - 1>(vectors, matrix, stride, block_stride, blocks, terms, factor, factor_stride, out, out_stride, accumulate);
}

template <class S>
void mix(const uint16_t* matrix, size_t stride, size_t block_stride, size_t blocks, size_t terms, const float* factor, size_t factor_stride,
         size_t vectors, float* out, size_t out_stride, bool accumulate) {
  for (size_t i = 0; i < vectors; i += S::tile_rows)
    mix_any<S, S::tile_rows>(std::min<size_t>(S::tile_rows, vectors - i), matrix, stride, block_stride, blocks, terms, factor + i * factor_stride,
                             factor_stride, out + i * out_stride, out_stride, accumulate);
}

template <class S>
void softmax_chunk(float* scores, size_t begin, size_t end, size_t padded, float* maximum, float* sum) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  std::fill(scores, scores + begin, nothing);
  std::fill(scores + end, scores + padded, nothing);
  auto most = S::load(scores);
  for (size_t i = lanes; i < padded; i += lanes) most = S::max(most, S::load(scores + i));
  *maximum = S::largest(most);
  auto total = S::zero_f32();
  for (size_t i = 0; i < padded; i += lanes) {
    S::store(scores + i, exponential<S>(S::sub(S::load(scores + i), S::set(*maximum))));
    if (i < begin) std::fill(scores + i, scores + std::min(begin, i + lanes), 0.0f);
    if (i + lanes > end) std::fill(scores + std::max(i, end), scores + i + lanes, 0.0f);
    total = S::add(total, S::load(scores + i));
  }
  *sum = sum_of<S>(total);
}

template <class S>
float scalar_exponential(float x) {
  float values[lanes];
  S::store(values, exponential<S>(S::set(x)));
  return values[0];
}

template <class S>
void fold_chunk(float* state_maximum, float* state_sum, float* state_out, float maximum, float sum, const float* out, size_t count) {
  const float most = std::max(*state_maximum, maximum);
  // The first chunk meets a state of sum 0, whose factor does not matter: 1 keeps the bits.
  const float before = *state_sum == 0.0f ? 1.0f : scalar_exponential<S>(*state_maximum - most);
  const float now = scalar_exponential<S>(maximum - most);
  *state_maximum = most;
  *state_sum = std::fma(*state_sum, before, sum * now);
  for (size_t i = 0; i < count; i += lanes) {
    const auto scaled = S::mul(S::load(out + i), S::set(now));
    S::store(state_out + i, S::fma(S::load(state_out + i), S::set(before), scaled));
  }
}

}  // namespace
}  // namespace borrador
