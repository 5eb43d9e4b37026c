// Matrices times tiles of rows, quantised and float. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"

namespace borrador {
namespace {

// How far ahead of the block in use weights are fetched, into the second cache level: the first is full of activations.
// Three blocks of Q4_K: more reaches beyond the piece that a thread works on more often than it hides latency.
constexpr size_t prefetch_bytes = 7104;

template <class S>
typename S::I32 load_small(const uint8_t* p) { return S::load_u8_i32(p); }
template <class S>
typename S::I32 load_small(const int8_t* p) { return S::load_i8_i32(p); }

// The scales of one group as floats, where it has one: weight = scale * value(code) + minimum.
template <class S, class Block>
struct GroupScales {
  typename S::F32 super_scale, super_minimum;

  explicit GroupScales(const Block& block) {
    if constexpr (Block::groups == 8) super_scale = S::load_f16(block.super_scale);
    if constexpr (requires { block.super_minimum; }) super_minimum = S::load_f16(block.super_minimum);
  }
  typename S::F32 scale(const Block& block, size_t g) const {
    if constexpr (requires { block.super_scale; }) return S::mul(S::to_f32(load_small<S>(block.scale[g])), super_scale);
    else if constexpr (Block::bfloat_scales) return S::load_bf16(block.scale[g]);
    else return S::load_f16(block.scale[g]);
  }
  typename S::F32 minimum(const Block& block, size_t g) const {
    if constexpr (requires { block.super_minimum; }) return S::mul(S::to_f32(S::load_u8_i32(block.minimum[g])), super_minimum);
    else return S::load_f16(block.minimum[g]);
  }
  typename S::F32 half_minimum(const Block& block, size_t g, size_t half) const {
    return S::mul(S::to_f32(S::template load_u4_i32<4>(block.half_scale[g][half])), super_minimum);
  }
};

// Integers for the two halves of a group.
template <class S>
struct Halves {
  typename S::I32 first, second;

  typename S::I32 weigh(typename S::I32 a, typename S::I32 b) const { return S::add_i32(S::mul_i32(a, first), S::mul_i32(b, second)); }
};

template <class S, class Block>
Halves<S> half_scales(const Block& block, size_t g) {
  if constexpr (requires { block.super_minimum; })
    return {S::template load_u4_i32<0>(block.half_scale[g][0]), S::template load_u4_i32<0>(block.half_scale[g][1])};
  else return {S::load_i8_i32(block.half_scale[g][0]), S::load_i8_i32(block.half_scale[g][1])};
}

// Code vectors v and v + 4 of a group.
template <class S, int Bits>
void load_pair(const Codes<Bits>& codes, int v, typename S::U8& first, typename S::U8& second) {
  if constexpr (Bits == 8) {
    first = S::load_u8(codes.full[v]);
    second = S::load_u8(codes.full[v + 4]);
  } else if constexpr (Bits < 4) {
    first = S::and_u8(S::shift_bit(S::load_u8(codes.low[0]), 2 * v, 0), S::set_u8(3));
    second = S::and_u8(S::shift_bit(S::load_u8(codes.low[1]), 2 * v, 0), S::set_u8(3));
    if constexpr (Bits == 3) {
      const auto high = S::load_u8(codes.high);
      first = S::or_masked(first, S::shift_bit(high, v, 2), S::set_u8(4));
      second = S::or_masked(second, S::shift_bit(high, v + 4, 2), S::set_u8(4));
    }
  } else {  // the low nibbles of both share one load
    const auto nibble = S::set_u8(15);
    const auto both = S::load_u8(codes.low[v]);
    first = S::and_u8(both, nibble);
    second = S::and_u8(S::template shift_right<4>(both), nibble);
    if constexpr (Bits == 5) {
      const auto high = S::load_u8(codes.high);
      first = S::or_masked(first, S::shift_bit(high, v, 4), S::set_u8(16));
      second = S::or_masked(second, S::shift_bit(high, v + 4, 4), S::set_u8(16));
    }
    if constexpr (Bits == 6) {
      first = S::or_masked(first, S::shift_bit(S::load_u8(codes.high[0]), 2 * v, 4), S::set_u8(48));
      second = S::or_masked(second, S::shift_bit(S::load_u8(codes.high[1]), 2 * v, 4), S::set_u8(48));
    }
  }
}

// One strip times Rows rows. `Stream` fetches the weights ahead; a second tile over the same strip finds them in cache.
template <class S, class Block, int Rows, bool Stream>
void tile(const Block* blocks, size_t count, const ActivationGroup<Rows>* activation, float* out, size_t out_stride) {
  using I32 = typename S::I32;
  using F32 = typename S::F32;
  constexpr bool wide = Block::wide, halves = Block::halves;
  constexpr bool minimums = Block::offset_shift == 0;
  constexpr bool from_zero = minimums || (wide && S::wide_takes_offset);  // S may subtract the 128 itself
  F32 sum[Rows];
  for (int i = 0; i < Rows; ++i) sum[i] = S::zero_f32();
  for (size_t b = 0; b < count; ++b) {
    const Block& block = blocks[b];
    const GroupScales<S, Block> scales(block);
    for (size_t g = 0; g < Block::groups; ++g, ++activation) {
      if constexpr (Stream) {
        constexpr size_t lines = (sizeof(Block) / Block::groups + 63) / 64;
        const auto* next = reinterpret_cast<const uint8_t*>(&block) + g * (sizeof(Block) / Block::groups) + prefetch_bytes;
        for (size_t line = 0; line < lines; ++line) S::prefetch(next + 64 * line);
      }
      I32 dot[Rows], second_dot[Rows];
      for (int i = 0; i < Rows; ++i) {
        if constexpr (from_zero) dot[i] = second_dot[i] = S::zero_i32();
        else dot[i] = S::template shift_left<Block::offset_shift>(S::broadcast_i32(&activation->negative_sum[halves ? 0 : 2][i]));
        if constexpr (halves && !from_zero)
          second_dot[i] = S::template shift_left<Block::offset_shift>(S::broadcast_i32(&activation->negative_sum[1][i]));
      }
      for (int v = 0; v < 4; ++v) {
        typename S::U8 first, second;
        load_pair<S, Block::Bits>(block.codes[g], v, first, second);
        if constexpr (requires { Block::table; }) {
          first = S::look_up(Block::table, first);
          second = S::look_up(Block::table, second);
        }
        for (int i = 0; i < Rows; ++i) {
          dot[i] = S::template dot4<wide>(dot[i], first, activation->value[i] + 4 * v);
          I32& other = halves ? second_dot[i] : dot[i];
          other = S::template dot4<wide>(other, second, activation->value[i] + 16 + 4 * v);
        }
      }
      if constexpr (halves) {
        const Halves<S> small = half_scales<S>(block, g);
        for (int i = 0; i < Rows; ++i) {
          const I32 total = small.weigh(dot[i], second_dot[i]);
          sum[i] = S::fma(S::to_f32(total), S::mul(scales.super_scale, S::broadcast(&activation->scale[i])), sum[i]);
        }
        if constexpr (minimums) {
          const F32 first = scales.half_minimum(block, g, 0), second = scales.half_minimum(block, g, 1);
          for (int i = 0; i < Rows; ++i) {
            sum[i] = S::negative_fma(first, S::broadcast(&activation->scaled_half_sum[0][i]), sum[i]);
            sum[i] = S::negative_fma(second, S::broadcast(&activation->scaled_half_sum[1][i]), sum[i]);
          }
        }
      } else {
        const F32 scale = scales.scale(block, g);
        for (int i = 0; i < Rows; ++i)
          sum[i] = S::fma(S::to_f32(dot[i]), S::mul(scale, S::broadcast(&activation->scale[i])), sum[i]);
        if constexpr (minimums) {
          const F32 minimum = scales.minimum(block, g);
          constexpr bool subtract = Block::groups == 8;
          for (int i = 0; i < Rows; ++i) {
            const F32 scaled_sum = S::broadcast(&activation->scaled_sum[i]);
            sum[i] = subtract ? S::negative_fma(minimum, scaled_sum, sum[i]) : S::fma(minimum, scaled_sum, sum[i]);
          }
        }
      }
    }
  }
  for (int i = 0; i < Rows; ++i) S::store(out + i * out_stride, sum[i]);
}

template <class S, class Block, int Rows, bool Stream>
void tile_of(const Block* blocks, size_t count, const uint8_t* activations, float* out, size_t out_stride) {
  tile<S, Block, Rows, Stream>(blocks, count, reinterpret_cast<const ActivationGroup<Rows>*>(activations), out, out_stride);
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
  const size_t tile_bytes = count * Block::groups * activation_bytes_per_row_group * most;
  for (size_t strip = begin; strip < end; ++strip) {
    const auto* blocks = reinterpret_cast<const Block*>(weights) + strip * count;
    for (size_t row = 0; row < rows; row += most) {
      const auto* acts = activations + row / most * tile_bytes;
      float* to = out + row * out_stride + strip * lanes;
      const size_t here = std::min(most, rows - row);
      if (row == 0) any_tile<S, Block, most, true>(here, blocks, count, acts, to, out_stride);
      else any_tile<S, Block, most, false>(here, blocks, count, acts, to, out_stride);
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
