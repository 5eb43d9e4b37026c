// The kernels, written once over a set S of sixteen-lane operations; each instruction set's file defines its S and
// instantiates them with kernel_table<S>(). Everything here has internal linkage: the files are compiled with
// different flags, and the linker must not merge their instances.
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

// --- quantised matmul ----------------------------------------------------------------------------------------------

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

// --- rows of activations -------------------------------------------------------------------------------------------

// Sums of sixteen lanes in a fixed order: halves are folded onto each other.
inline float sum_lanes(const float* values) {
  float fold[8];
  for (int i = 0; i < 8; ++i) fold[i] = values[i] + values[i + 8];
  for (int i = 0; i < 4; ++i) fold[i] += fold[i + 4];
  return (fold[0] + fold[2]) + (fold[1] + fold[3]);
}

template <class S>
float sum_of(typename S::F32 vector) {
  float values[lanes];
  S::store(values, vector);
  return sum_lanes(values);
}

template <class S>
void quantise(const float* x, size_t columns, size_t begin, size_t end, uint8_t* activations, size_t row, size_t tile) {
  const size_t group_bytes = activation_bytes_per_row_group * tile;
  for (size_t g = begin; g < end; ++g) {
    float padded[group];
    const float* values = x + g * group;
    if ((g + 1) * group > columns) {
      std::memset(padded, 0, sizeof padded);
      if (g * group < columns) std::memcpy(padded, values, (columns - g * group) * sizeof(float));
      values = padded;
    }
    const auto low = S::load(values), high = S::load(values + lanes);
    const float largest = S::largest(S::max(S::abs(low), S::abs(high)));
    const float scale = largest * (1.0f / 127.0f), inverse = largest > 0 ? 127.0f / largest : 0.0f;
    uint8_t* base = activations + g * group_bytes;
    auto* value = reinterpret_cast<int8_t*>(base + row * group);
    const auto low_values = S::round(S::mul(low, S::set(inverse))), high_values = S::round(S::mul(high, S::set(inverse)));
    S::store_i8(value, low_values);
    S::store_i8(value + lanes, high_values);
    const int32_t first = S::sum(low_values), second = S::sum(high_values);
    auto* scales = reinterpret_cast<float*>(base + tile * group);
    auto* sums = reinterpret_cast<int32_t*>(scales + 2 * tile);
    scales[row] = scale;
    scales[tile + row] = scale * float(first + second);
    sums[row] = -first;
    sums[tile + row] = -second;
    sums[2 * tile + row] = -(first + second);
    auto* half_sums = reinterpret_cast<float*>(sums + 3 * tile);
    half_sums[row] = scale * float(first);
    half_sums[tile + row] = scale * float(second);
  }
}

// Loads up to sixteen values, zero beyond.
template <class S>
typename S::F32 load_some(const float* x, size_t count) {
  if (count >= lanes) return S::load(x);
  float values[lanes] = {};
  std::memcpy(values, x, count * sizeof(float));
  return S::load(values);
}

template <class S>
void store_some(float* out, typename S::F32 vector, size_t count) {
  if (count >= lanes) return S::store(out, vector);
  float values[lanes];
  S::store(values, vector);
  std::memcpy(out, values, count * sizeof(float));
}

template <class S>
void rms_norm(const float* x, const float* weight, size_t count, float epsilon, float* out) {
  auto squares = S::zero_f32();
  for (size_t i = 0; i < count; i += lanes) {
    const auto v = load_some<S>(x + i, count - i);
    squares = S::fma(v, v, squares);
  }
  const float scale = 1.0f / std::sqrt(sum_of<S>(squares) / float(count) + epsilon);
  for (size_t i = 0; i < count; i += lanes) {
    const auto scaled = S::mul(load_some<S>(x + i, count - i), S::set(scale));
    store_some<S>(out + i, S::mul(scaled, load_some<S>(weight + i, count - i)), count - i);
  }
}

template <class S>
void add(float* x, const float* y, size_t count) {
  for (size_t i = 0; i < count; i += lanes)
    store_some<S>(x + i, S::add(load_some<S>(x + i, count - i), load_some<S>(y + i, count - i)), count - i);
}

template <class S>
void add_scaled(float* x, const float* y, float factor, size_t count) {
  for (size_t i = 0; i < count; i += lanes)
    store_some<S>(x + i, S::fma(load_some<S>(y + i, count - i), S::set(factor), load_some<S>(x + i, count - i)), count - i);
}

// e^x to about one unit in the last place for x <= 88; below -87.3 the result is the smallest normal number's scale.
// Range reduction to |r| <= ln(2)/2 and the series of e^r, its coefficients 1/k!.
template <class S>
typename S::F32 exponential(typename S::F32 x) {
  x = S::min(S::max(x, S::set(-87.0f)), S::set(88.0f));
  const auto n = S::round(S::mul(x, S::set(1.44269504088896341f)));
  const auto whole = S::to_f32(n);
  auto r = S::fma(whole, S::set(-0.693359375f), x);
  r = S::fma(whole, S::set(2.12194440e-4f), r);
  auto p = S::set(1.0f / 5040);
  p = S::fma(p, r, S::set(1.0f / 720));
  p = S::fma(p, r, S::set(1.0f / 120));
  p = S::fma(p, r, S::set(1.0f / 24));
  p = S::fma(p, r, S::set(1.0f / 6));
  p = S::fma(p, r, S::set(0.5f));
  p = S::fma(p, r, S::set(1.0f));
  p = S::fma(p, r, S::set(1.0f));
  return S::mul(p, S::power_of_two(n));
}

template <class S>
void silu_mul(const float* gate, const float* up, size_t count, float* out) {
  const auto one = S::set(1.0f);
  for (size_t i = 0; i < count; i += lanes) {
    const auto g = load_some<S>(gate + i, count - i);
    const auto silu = S::div(g, S::add(one, exponential<S>(S::sub(S::zero_f32(), g))));
    store_some<S>(out + i, S::mul(silu, load_some<S>(up + i, count - i)), count - i);
  }
}

// x * (1 + tanh(u)) / 2 = x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3) (Hendrycks and Gimpel, arXiv 1606.08415).
template <class S>
void gelu_mul(const float* gate, const float* up, size_t count, float* out) {
  const auto one = S::set(1.0f), cubic = S::set(0.044715f), factor = S::set(-1.5957691216057308f);
  for (size_t i = 0; i < count; i += lanes) {
    const auto g = load_some<S>(gate + i, count - i);
    const auto u = S::mul(g, S::fma(S::mul(g, g), cubic, one));
    const auto gelu = S::div(g, S::add(one, exponential<S>(S::mul(u, factor))));
    store_some<S>(out + i, S::mul(gelu, load_some<S>(up + i, count - i)), count - i);
  }
}

// tanh(y) = 1 - 2 / (exp(2y) + 1).
template <class S>
void soft_cap(float* x, size_t count, float cap) {
  const auto one = S::set(1.0f), two = S::set(2.0f), limit = S::set(cap), doubled = S::set(2.0f / cap);
  for (size_t i = 0; i < count; i += lanes) {
    const auto power = exponential<S>(S::mul(load_some<S>(x + i, count - i), doubled));
    const auto tanh = S::sub(one, S::div(two, S::add(power, one)));
    store_some<S>(x + i, S::mul(limit, tanh), count - i);
  }
}

template <class S>
void to_half(const float* x, size_t count, uint16_t* out) {
  const auto most = S::set(65504.0f), least = S::set(-65504.0f);
  for (size_t i = 0; i < count; i += lanes) {
    uint16_t half[lanes];
    S::store_f16(half, S::min(S::max(load_some<S>(x + i, count - i), least), most));
    std::memcpy(out + i, half, std::min(lanes, count - i) * sizeof(uint16_t));
  }
}

// --- attention -----------------------------------------------------------------------------------------------------

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

// --- the machine's limit -------------------------------------------------------------------------------------------

template <class S>
int32_t integer_peak(size_t rounds) {
  typename S::I32 sums[peak_dots];
  for (auto& sum : sums) sum = S::zero_i32();
  const auto codes = S::set_u8(1);
  const int8_t values[4 * peak_dots] = {};
  const int8_t* volatile place = values;  // read anew each round, or the products would be taken out of the loop
  for (size_t round = 0; round < rounds; ++round) {
    const int8_t* now = place;
    for (size_t i = 0; i < peak_dots; ++i) sums[i] = S::template dot4<false>(sums[i], codes, now + 4 * i);
  }
  for (size_t i = 1; i < peak_dots; ++i) sums[0] = S::add_i32(sums[0], sums[i]);
  return S::sum(sums[0]);
}

template <class S>
constexpr KernelTable kernel_table(const char* name) {
  return {name,        size_t(S::tile_rows), matmul<S>, quantise<S>,      rms_norm<S>,   add<S>,     add_scaled<S>,
          silu_mul<S>, gelu_mul<S>,          soft_cap<S>, mix<S>,      softmax_chunk<S>, fold_chunk<S>, to_half<S>, integer_peak<S>};
}

}  // namespace
}  // namespace borrador
