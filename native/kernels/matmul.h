// Matrices times tiles of rows, quantised and float. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"

// For steps of a tile that keep their arrays in registers only where they are compiled into it, and for prefetching, which
// GCC otherwise takes for a function without effect.
#ifdef _MSC_VER
#define BORRADOR_INLINE __forceinline
#else
#define BORRADOR_INLINE __attribute__((always_inline)) inline
#endif

namespace borrador {
namespace {

// How far ahead of the block in use weights are fetched, into the second cache level: the first is full of activations.
// Three blocks of Q4_K: more reaches beyond the piece that a thread works on more often than it hides latency.
constexpr size_t prefetch_bytes = 7104;

// Activations that stay in the second cache level while a piece of the weights passes by.
constexpr size_t resident_bytes = 192 << 10;

// Code vector j of a group, as unsigned bytes.
template <class S, int Bits>
BORRADOR_INLINE typename S::U8 load_codes(const Codes<Bits>& codes, int j) {
  const int bit = 2 * (j % 4), half = j / 4;
  if constexpr (Bits == 8) {
    return S::load_u8(codes.full[j]);
  } else if constexpr (Bits == 6) {
    const auto& three = codes.three[half];
    if (j % 4 < 3) return S::and_u8(S::load_u8(three[j % 4]), S::set_u8(63));
    const auto high = S::and_u8(S::shift_bit(S::load_u8(three[0]), 6, 4), S::set_u8(48));
    const auto middle = S::or_masked(high, S::shift_bit(S::load_u8(three[1]), 6, 2), S::set_u8(12));
    return S::or_masked(middle, S::shift_bit(S::load_u8(three[2]), 6, 0), S::set_u8(3));
  } else if constexpr (Bits < 4) {
    const auto low = S::and_u8(S::shift_bit(S::load_u8(codes.low[half]), bit, 0), S::set_u8(3));
    if constexpr (Bits == 2) return low;
    else return S::or_masked(low, S::shift_bit(S::load_u8(codes.high), j, 2), S::set_u8(4));
  } else {
    const auto both = S::load_u8(codes.low[j % 4]);
    const auto low = S::and_u8(half ? S::template shift_right<4>(both) : both, S::set_u8(15));
    if constexpr (Bits == 4) return low;
    else return S::or_masked(low, S::shift_bit(S::load_u8(codes.high), j, 4), S::set_u8(16));
  }
}

// Adds the products of code vectors [First, Last) of a group with every row's values to `dot`.
template <class S, class Block, int First, int Last, int Rows>
BORRADOR_INLINE void add_dots(const Codes<Block::Bits>& group_codes, const int8_t (&values)[Rows][group], typename S::I32 (&dot)[Rows]) {
  for (int j = First; j < Last; ++j) {
    auto codes = load_codes<S>(group_codes, j);
    if constexpr (requires { Block::table; }) codes = S::look_up(Block::table, codes);
    for (int i = 0; i < Rows; ++i) dot[i] = S::template dot4<Block::wide>(dot[i], codes, values[i] + 4 * j);
  }
}

// What a sum of products starts from: the offset of the codes times the sum of the values, and half of what is dropped
// later, so that dropping rounds. Ties would then always go up, so odd groups start one lower, and theirs go down.
template <class S, class Block, bool Odd, int Rows>
BORRADOR_INLINE typename S::I32 start_of_dot(const ActivationBlock<Rows>& activation, size_t g, int row) {
  constexpr int half = [] {
    if constexpr (requires { Block::sum_shift; }) return Block::sum_shift == 0 ? 0 : (1 << Block::sum_shift) / 2 - (Odd ? 1 : 0);
    else return 0;
  }();
  if constexpr (Block::offset_shift == 0 || (Block::wide && S::wide_takes_offset)) return S::set_i32(half);  // S may subtract the 128 itself
  const auto offset = S::template shift_left<Block::offset_shift>(S::broadcast_i32(&activation.negative_sum[g][row]));
  if constexpr (half == 0) return offset;
  else return S::add_i32(offset, S::set_i32(half));
}

// The same for half a group. The stored sums hold the offset 2^5 and half of what is dropped then; shifted to 2^2, where
// nothing is dropped, that half vanishes.
template <class S, class Block, int Rows>
BORRADOR_INLINE typename S::I32 start_of_half(const ActivationBlock<Rows>& activation, size_t g, size_t half, int row) {
  if constexpr (Block::offset_shift == 0) return S::zero_i32();
  const auto offset = S::broadcast_i32(&activation.half_offset[g][half][row]);
  if constexpr (Block::offset_shift == 5) return offset;
  else return S::template divide_by_power<5 - Block::offset_shift>(offset);
}

template <class S, bool Odd, class Block, int Rows>
BORRADOR_INLINE void whole_dots(const Block& block, size_t g, const ActivationBlock<Rows>& activation, typename S::I32 (&dot)[Rows]) {
  for (int i = 0; i < Rows; ++i) dot[i] = start_of_dot<S, Block, Odd>(activation, g, i);
  add_dots<S, Block, 0, 8>(block.codes[g], activation.value[g], dot);
}

template <class S, size_t Half, class Block, int Rows>
BORRADOR_INLINE void half_dots(const Block& block, size_t g, const ActivationBlock<Rows>& activation, typename S::I32 (&dot)[Rows]) {
  for (int i = 0; i < Rows; ++i) dot[i] = start_of_half<S, Block>(activation, g, Half, i);
  add_dots<S, Block, 4 * Half, 4 * Half + 4>(block.codes[g], activation.value[g], dot);
}

// Fetches what lies `prefetch_bytes` behind group g of a block.
template <class S, class Block>
BORRADOR_INLINE void fetch_ahead(const Block& block, size_t g) {
  constexpr size_t bytes = sizeof(Block) / Block::groups, lines = (bytes + 63) / 64;
  const auto* next = reinterpret_cast<const uint8_t*>(&block) + g * bytes + prefetch_bytes;
  for (size_t line = 0; line < lines; ++line) S::prefetch(next + 64 * line);
}

// Sums of products of two groups times the groups' scales, added to `total`.
template <class S, class Block, int Rows>
BORRADOR_INLINE void add_scaled_dots(const typename S::I32 (&even)[Rows], const typename S::I32 (&odd)[Rows], typename S::I16 scales,
                                     const int16_t (&group_scales)[Rows][2], typename S::I32 (&total)[Rows]) {
  for (int i = 0; i < Rows; ++i)
    total[i] = S::dot2(total[i], S::template pack_pairs<Block::sum_shift>(even[i], odd[i]),
                            S::mul_pairs(scales, S::broadcast_pair(group_scales[i])));
}

template <class S, class Block>
BORRADOR_INLINE typename S::I16 half_scales(const Block& block, size_t pair, size_t half) {
  if constexpr (requires { block.super_minimum; }) return S::template load_nibble_pairs<0>(block.half_scale[pair][half][0]);
  else return S::load_pairs(block.half_scale[pair][half][0]);
}

template <class S, bool Stream, class Block, int Rows>
BORRADOR_INLINE void add_pair(const Block& block, size_t pair, const ActivationBlock<Rows>& activation, typename S::I32 (&total)[Rows]) {
  typename S::I32 even[Rows], odd[Rows];
  const auto& group_scales = activation.group_scale[pair];
  if constexpr (Stream) fetch_ahead<S>(block, 2 * pair);
  if constexpr (Block::halves) {
    half_dots<S, 0>(block, 2 * pair, activation, even);
    half_dots<S, 0>(block, 2 * pair + 1, activation, odd);
    if constexpr (Stream) fetch_ahead<S>(block, 2 * pair + 1);
    add_scaled_dots<S, Block>(even, odd, half_scales<S>(block, pair, 0), group_scales, total);
    half_dots<S, 1>(block, 2 * pair, activation, even);
    half_dots<S, 1>(block, 2 * pair + 1, activation, odd);
    add_scaled_dots<S, Block>(even, odd, half_scales<S>(block, pair, 1), group_scales, total);
  } else {
    whole_dots<S, false>(block, 2 * pair, activation, even);
    if constexpr (Stream) fetch_ahead<S>(block, 2 * pair + 1);
    whole_dots<S, true>(block, 2 * pair + 1, activation, odd);
    add_scaled_dots<S, Block>(even, odd, S::load_pairs(block.scale[pair][0]), group_scales, total);
  }
}

// What the minimums of a block take from one row.
template <class S, class Block, int Rows>
BORRADOR_INLINE typename S::I32 minimum_sum(const Block& block, const ActivationBlock<Rows>& activation, int row) {
  auto sum = S::zero_i32();
  for (size_t pair = 0; pair < Block::groups / 2; ++pair) {
    if constexpr (Block::halves)
      for (size_t half = 0; half < 2; ++half)
        sum = S::dot2(sum, S::template load_nibble_pairs<4>(block.half_scale[pair][half][0]), S::broadcast_pair(activation.half_sum[pair][half][row]));
    else sum = S::dot2(sum, S::load_pairs(block.minimum[pair][0]), S::broadcast_pair(activation.group_sum[pair][row]));
  }
  return sum;
}

// One strip times Rows rows, where scales are integers below one float scale a block. `Stream` fetches the weights ahead; a
// second tile over the same strip finds them in cache.
template <class S, class Block, int Rows, bool Stream>
  requires(Block::groups == block_groups)
void tile(const Block* blocks, size_t count, const ActivationBlock<Rows>* activation, float* out, size_t out_stride) {
  typename S::F32 sum[Rows];
  for (int i = 0; i < Rows; ++i) sum[i] = S::zero_f32();
  for (size_t b = 0; b < count; ++b, ++activation) {
    const Block& block = blocks[b];
    typename S::I32 total[Rows];
    for (int i = 0; i < Rows; ++i) total[i] = S::zero_i32();
    for (size_t pair = 0; pair < Block::groups / 2; ++pair) {
      add_pair<S, Stream>(block, pair, *activation, total);
    }
    const auto scale = S::mul(S::load_f16(block.super_scale), S::set(float(1 << Block::sum_shift)));
    for (int i = 0; i < Rows; ++i) sum[i] = S::fma(S::mul(S::to_f32(total[i]), scale), S::broadcast(&activation->scale[i]), sum[i]);
    if constexpr (requires { block.super_minimum; }) {
      const auto minimum = S::load_f16(block.super_minimum);
      for (int i = 0; i < Rows; ++i) {
        const auto product = S::mul(S::to_f32(minimum_sum<S>(block, *activation, i)), minimum);
        sum[i] = S::negative_fma(product, S::broadcast(&activation->sum_scale[i]), sum[i]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i) S::store(out + i * out_stride, sum[i]);
}

// One strip times Rows rows, where every group has a float scale.
template <class S, class Block, int Rows, bool Stream>
  requires(Block::groups != block_groups)
void tile(const Block* blocks, size_t count, const ActivationBlock<Rows>* activations, float* out, size_t out_stride) {
  typename S::F32 sum[Rows];
  for (int i = 0; i < Rows; ++i) sum[i] = S::zero_f32();
  for (size_t b = 0; b < count; ++b) {
    const Block& block = blocks[b];
    const ActivationBlock<Rows>& activation = activations[b * Block::groups / block_groups];
    const size_t first = b * Block::groups % block_groups;
    for (size_t g = 0; g < Block::groups; ++g) {
      if constexpr (Stream) fetch_ahead<S>(block, g);
      typename S::I32 dot[Rows];
      for (int i = 0; i < Rows; ++i) dot[i] = start_of_dot<S, Block, false>(activation, first + g, i);
      add_dots<S, Block, 0, 8>(block.codes[g], activation.value[first + g], dot);
      const auto scale = [&] {
        if constexpr (Block::bfloat_scales) return S::load_bf16(block.scale[g]);
        else return S::load_f16(block.scale[g]);
      }();
      for (int i = 0; i < Rows; ++i)
        sum[i] = S::fma(S::to_f32(dot[i]), S::mul(scale, S::broadcast(&activation.float_scale[first + g][i])), sum[i]);
      if constexpr (requires { block.minimum; }) {
        const auto minimum = S::load_f16(block.minimum[g]);
        for (int i = 0; i < Rows; ++i) sum[i] = S::fma(minimum, S::broadcast(&activation.scaled_sum[first + g][i]), sum[i]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i) S::store(out + i * out_stride, sum[i]);
}

template <class S, class Block, int Rows, bool Stream>
void tile_of(const Block* blocks, size_t count, const uint8_t* activations, float* out, size_t out_stride) {
  tile<S, Block, Rows, Stream>(blocks, count, reinterpret_cast<const ActivationBlock<Rows>*>(activations), out, out_stride);
}

// Calls the tile of `rows` rows, 1 <= rows <= Most.
template <class S, class Block, int Most, bool Stream>
void any_tile(size_t rows, const Block* blocks, size_t count, const uint8_t* activations, float* out, size_t out_stride) {
  if (rows == Most) return tile_of<S, Block, Most, Stream>(blocks, count, activations, out, out_stride);
  if constexpr (Most > 1) any_tile<S, Block, Most - 1, Stream>(rows, blocks, count, activations, out, out_stride);
}

template <class S, class Block>
void matmul_quantised(const uint8_t* weights, size_t count, size_t begin, size_t end, const uint8_t* activations, size_t rows,
                      float* out, size_t out_stride) {
  constexpr size_t most = S::tile_rows;
  const size_t activation_blocks = (count * Block::groups + block_groups - 1) / block_groups;
  const size_t tile_bytes = activation_blocks * activation_bytes_per_row_block * most;
  const size_t resident = std::max<size_t>(1, resident_bytes / tile_bytes) * most;
  for (size_t first = 0; first < rows; first += resident) {
    for (size_t strip = begin; strip < end; ++strip) {
      const auto* blocks = reinterpret_cast<const Block*>(weights) + strip * count;
      for (size_t row = first; row < std::min(first + resident, rows); row += most) {
        const auto* acts = activations + row / most * tile_bytes;
        float* to = out + row * out_stride + strip * lanes;
        const size_t here = std::min(most, rows - row);
        if (row == 0) any_tile<S, Block, most, true>(here, blocks, count, acts, to, out_stride);
        else any_tile<S, Block, most, false>(here, blocks, count, acts, to, out_stride);
      }
    }
  }
}

// --- float matmul --------------------------------------------------------------------------------------------------

template <class S>
typename S::F32 load_row(const F32Block& block) { return S::load(block.row); }
template <class S>
typename S::F32 load_row(const F16Block& block) { return S::load_f16(block.row); }
template <class S>
typename S::F32 load_row(const Bf16Block& block) { return S::load_bf16(block.row); }

template <class S, class Block, int Rows>
void float_tile(const Block* blocks, size_t count, const float* activations, size_t stride, float* out, size_t out_stride) {
  typename S::F32 sum[Rows];
  for (int i = 0; i < Rows; ++i) sum[i] = S::zero_f32();
  for (size_t k = 0; k < count; ++k) {
    const auto weight = load_row<S>(blocks[k]);
    for (int i = 0; i < Rows; ++i) sum[i] = S::fma(weight, S::broadcast(activations + i * stride + k), sum[i]);
  }
  for (int i = 0; i < Rows; ++i) S::store(out + i * out_stride, sum[i]);
}

template <class S, class Block, int Most>
void any_float_tile(size_t rows, const Block* blocks, size_t count, const float* activations, size_t stride, float* out, size_t out_stride) {
  if (rows == Most) return float_tile<S, Block, Most>(blocks, count, activations, stride, out, out_stride);
  if constexpr (Most > 1) any_float_tile<S, Block, Most - 1>(rows, blocks, count, activations, stride, out, out_stride);
}

template <class S, class Block>
void matmul_float(const uint8_t* weights, size_t count, size_t begin, size_t end, const uint8_t* activations, size_t rows, float* out,
                  size_t out_stride) {
  const auto* values = reinterpret_cast<const float*>(activations);
  for (size_t strip = begin; strip < end; ++strip)
    for (size_t row = 0; row < rows; row += S::tile_rows)
      any_float_tile<S, Block, S::tile_rows>(std::min<size_t>(S::tile_rows, rows - row), reinterpret_cast<const Block*>(weights) + strip * count,
                                             count, values + row * count, count, out + row * out_stride + strip * lanes, out_stride);
}

template <class S>
void matmul(Format format, const uint8_t* weights, size_t blocks_per_strip, size_t begin, size_t end, const uint8_t* activations, size_t rows,
            float* out, size_t out_stride) {
  const bool quantised = with_quantised_block(format, [&]<class Block>() {
    matmul_quantised<S, Block>(weights, blocks_per_strip, begin, end, activations, rows, out, out_stride);
  });
  if (quantised) return;
  if (format == Format::f32) matmul_float<S, F32Block>(weights, blocks_per_strip, begin, end, activations, rows, out, out_stride);
  if (format == Format::f16) matmul_float<S, F16Block>(weights, blocks_per_strip, begin, end, activations, rows, out, out_stride);
  if (format == Format::bf16) matmul_float<S, Bf16Block>(weights, blocks_per_strip, begin, end, activations, rows, out, out_stride);
}

}  // namespace
}  // namespace borrador
