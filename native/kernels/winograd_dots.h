// Integer dot products with half the multiplications (Winograd, A new algorithm for inner product, IEEE Transactions on
// Computers C-17, 1968): for numbers taken by twos,
//
//   a0 b0 + a1 b1 = (a0 + b1)(a1 + b0) - a0 a1 - b0 b1
//
// The last two products do not depend on the partner and are shared by all dot products of a vector or of a row of lanes. The
// sums in the brackets go to units that are idle otherwise. In integers that wrap around the result is exact, so it is the
// one of `dots`. A number here is a pair of 16-bit integers, as one 32-bit lane holds them.
#pragma once
#include <algorithm>

#include "attention_steps.h"

namespace borrador {
namespace {

constexpr size_t few_vectors = 4;       // fewer do not repay the products that they share
constexpr size_t vectors_together = 64;  // whose own products are known at a time

// Sum of the products of neighbouring pairs of a vector.
template <class S>
int32_t own_products(const int16_t* factor, size_t pairs) {
  constexpr size_t at_once = 2 * lanes;
  auto sum = S::zero_i32();
  size_t i = 0;
  for (; i + at_once <= 2 * pairs; i += at_once) {
    const auto values = S::load_i16(factor + i);
    sum = S::dot2(sum, values, S::next_pair(values));
  }
  int16_t rest[at_once] = {};
  std::copy(factor + i, factor + 2 * pairs, rest);
  const auto values = S::load_i16(rest);
  return S::sum(S::dot2(sum, values, S::next_pair(values)));
}

template <class S, int Vectors, int Blocks>
void winograd_tile(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, const int32_t* vector_products,
                   const typename S::I32 (&block_products)[Blocks], Fetcher<S>& fetcher, int32_t* out, size_t out_stride, bool accumulate) {
  typename S::I32 sum[Blocks][Vectors];
  for (int i = 0; i < Vectors; ++i) {
    const auto own = S::set_i32(vector_products[i]);
    for (int b = 0; b < Blocks; ++b) {
      const auto start = accumulate ? S::load_i32(out + i * out_stride + b * lanes) : S::zero_i32();
      sum[b][i] = S::sub_i32(S::sub_i32(start, own), block_products[b]);
    }
  }
  for (size_t t = 0; t < terms.pairs; t += 2) {
    fetcher.step();
    typename S::I16 first[Blocks], second[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      first[b] = S::load_i16(matrix + b * terms.block_stride + t * terms.stride);
      second[b] = S::load_i16(matrix + b * terms.block_stride + (t + 1) * terms.stride);
    }
    for (int i = 0; i < Vectors; ++i) {
      const int16_t* factors = factor + i * terms.factor_stride + 2 * t;
      const auto first_factor = S::broadcast_pair(factors), second_factor = S::broadcast_pair(factors + 2);
      for (int b = 0; b < Blocks; ++b)
        sum[b][i] = S::dot2(sum[b][i], S::add_i16(first[b], second_factor), S::add_i16(second[b], first_factor));
    }
  }
  for (int i = 0; i < Vectors; ++i)
    for (int b = 0; b < Blocks; ++b) S::store_i32(out + i * out_stride + b * lanes, sum[b][i]);
}

template <class S, int Most, int Blocks>
void winograd_any(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, const int32_t* vector_products,
                  const typename S::I32 (&block_products)[Blocks], size_t vectors, Fetcher<S>& fetcher, int32_t* out, size_t out_stride, bool accumulate) {
  if (vectors >= Most)
    return winograd_tile<S, Most, Blocks>(terms, matrix, factor, vector_products, block_products, fetcher, out, out_stride, accumulate);
  if constexpr (Most > 1)
    winograd_any<S, Most - 1, Blocks>(terms, matrix, factor, vector_products, block_products, vectors, fetcher, out, out_stride, accumulate);
}

template <class S, int Blocks>
void winograd_blocks(const DotTerms& terms, const int16_t* matrix, const int16_t* factor, const int32_t* vector_products, size_t vectors,
                     Fetcher<S>& fetcher, int32_t* out, size_t out_stride, bool accumulate) {
  constexpr int most = S::dot_sums / 2;
  typename S::I32 block_products[Blocks];
  for (int b = 0; b < Blocks; ++b) {
    block_products[b] = S::zero_i32();
    const int16_t* block = matrix + b * terms.block_stride;
    for (size_t t = 0; t < terms.pairs; t += 2)
      block_products[b] = S::dot2(block_products[b], S::load_i16(block + t * terms.stride), S::load_i16(block + (t + 1) * terms.stride));
  }
  for (size_t i = 0; i < vectors; i += most)
    winograd_any<S, most, Blocks>(terms, matrix, factor + i * terms.factor_stride, vector_products + i, block_products, vectors - i,
                                  fetcher, out + i * out_stride, out_stride, accumulate);
}

// `dots`, the same to the bit.
template <class S>
void winograd_dots(const DotTerms& terms, const int16_t* matrix, size_t blocks, const int16_t* factor, size_t vectors, int32_t* out,
                   size_t out_stride, bool accumulate) {
  if (vectors < few_vectors) return dots<S>(terms, matrix, blocks, factor, vectors, out, out_stride, accumulate);
  const size_t tile = S::dot_sums / 2, tiles = (vectors + tile - 1) / tile;
  Fetcher<S> fetcher(terms, tiles * ((blocks + 1) / 2) * (terms.pairs / 2));
  for (size_t i = 0; i < vectors; i += vectors_together) {
    const size_t count = std::min(vectors_together, vectors - i);
    const int16_t* factors = factor + i * terms.factor_stride;
    int32_t own[vectors_together];
    for (size_t j = 0; j < count; ++j) own[j] = own_products<S>(factors + j * terms.factor_stride, terms.pairs);
    int32_t* to = out + i * out_stride;
    size_t b = 0;
    for (; b + 2 <= blocks; b += 2)
      winograd_blocks<S, 2>(terms, matrix + b * terms.block_stride, factors, own, count, fetcher, to + b * lanes, out_stride, accumulate);
    if (b < blocks) winograd_blocks<S, 1>(terms, matrix + b * terms.block_stride, factors, own, count, fetcher, to + b * lanes, out_stride, accumulate);
  }
}

}  // namespace
}  // namespace borrador
