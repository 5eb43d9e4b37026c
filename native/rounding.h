// Readers that turn a file's weights into Q4_0, where fewer bytes a pass are worth more than what rounding loses: in draft
// models, whose weights never change an answer.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "float16.h"
#include "gguf_blocks.h"

namespace borrador {

// Weight = scale * value(code) + minimum, as the formats define them, in one half of a group.
struct Affine {
  float scale, minimum;
};

template <class Block>
Affine affine_of(const Group& from, size_t half) {
  if constexpr (requires { &Block::super_scale; }) {
    const float super_scale = f16_to_f32(from.scale), super_minimum = -f16_to_f32(from.minimum);
    if constexpr (Block::halves) {
      const auto small = std::remove_all_extents_t<decltype(Block::half_scale)>(from.small_scale[half]);
      if constexpr (requires { &Block::super_minimum; }) return {super_scale * float(small & 15), super_minimum * float(small >> 4)};
      else return {super_scale * float(small), 0};
    } else {
      const auto small = std::remove_all_extents_t<decltype(Block::scale)>(from.small_scale[0]);
      if constexpr (requires { &Block::super_minimum; }) return {super_scale * float(small), super_minimum * float(from.small_minimum)};
      else return {super_scale * float(small), 0};
    }
  } else if constexpr (Block::bfloat_scales) {
    return {bf16_to_f32(from.scale), 0};
  } else {
    return {f16_to_f32(from.scale), f16_to_f32(from.minimum)};
  }
}

// The 32 weights of a group.
template <class Block>
void dequantise(const Group& from, float* out) {
  const Affine halves[] = {affine_of<Block>(from, 0), affine_of<Block>(from, 1)};
  for (size_t i = 0; i < group; ++i) out[i] = halves[i / 16].scale * float(Block::value(from.code[i])) + halves[i / 16].minimum;
}

// The weight of largest magnitude, of several the first. Magnitudes of floats are ordered as their bits are.
inline float largest_of(const float* values) {
  int32_t bits[group], most = 0;
  std::memcpy(bits, values, sizeof bits);
  for (size_t i = 0; i < group; ++i) most = std::max(most, bits[i] & INT32_MAX);
  size_t first = 0;
  while ((bits[first] & INT32_MAX) != most) ++first;
  return values[first];
}

// Q4_0 of 32 weights, rounded as ggml's quantize_row_q4_0_ref does: the largest becomes code 0, which stands for -8.
// Finite weights stay finite: a scale too large for half precision is cut.
inline void quantise_q4_0(const float* values, Group& out) {
  constexpr float largest_half = 65504;
  const float scale = std::clamp(largest_of(values) / -8, -largest_half, largest_half), inverse = scale != 0 ? 1 / scale : 0;
  out.scale = f32_to_f16(scale);
  for (size_t i = 0; i < group; ++i) {
    const float code = values[i] * inverse + 8.5f, above = code > 0 ? code : 0;
    out.code[i] = uint8_t(int32_t(above < 15 ? above : 15));
  }
}

template <class Block>
struct Rounded {
  using Reader = typename ReaderOf<Block>::type;
  static constexpr size_t bytes = Reader::bytes, groups = Reader::groups;
  static void read(const uint8_t* p, size_t g, Group& out) {
    Group stored;
    float values[group];
    Reader::read(p, g, stored);
    dequantise<Block>(stored, values);
    quantise_q4_0(values, out);
  }
};

struct F32 {
  using Bits = uint32_t;
  static float value(Bits bits) { return std::bit_cast<float>(bits); }
};
struct F16 {
  using Bits = uint16_t;
  static float value(Bits bits) { return f16_to_f32(bits); }
};
struct Bf16 {
  using Bits = uint16_t;
  static float value(Bits bits) { return bf16_to_f32(bits); }
};

template <class Element>
struct RoundedFloats {
  static constexpr size_t bytes = group * sizeof(typename Element::Bits), groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    typename Element::Bits bits[group];
    float values[group];
    std::memcpy(bits, p, sizeof bits);
    for (size_t i = 0; i < group; ++i) values[i] = Element::value(bits[i]);
    quantise_q4_0(values, out);
  }
};

}  // namespace borrador
