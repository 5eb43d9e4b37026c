// The layouts weights are repacked into at load: without loss, and near the width they have in the file.
//
// Sixteen output rows form a strip. Within a strip the columns (k) run in groups of 32, and lane r of every vector
// belongs to row r, so that one 64-byte load feeds sixteen dot products:
//
//   vector j of a group (64 bytes):   | row 0: k=4j..4j+3 | row 1: k=4j..4j+3 | ... | row 15 |     j = 0..7
//
//   4 bits:  low[v]   nibbles 0-3 hold vector v, nibbles 4-7 vector v+4                             v = 0..3
//   5 bits:  + high   bit j of each byte is bit 4 of vector j's code
//   6 bits:  + high   high[0] holds bits 4-5 of vectors 0..3 in bits 2j and 2j+1, high[1] those of vectors 4..7
//   8 bits:  full[j]  one byte a code
//
// A code is unsigned; its weight is scale * (code - offset) or scale * code + minimum. Source of the block formats:
// the GGUF specification and ggml's format descriptions (see weights.cpp).
#pragma once
#include <cstddef>
#include <cstdint>

namespace borrador {

inline constexpr size_t lanes = 16;
inline constexpr size_t group = 32;

// Values are GGML type numbers, as they stand in GGUF files.
enum class Format : uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q4_k = 12, q5_k = 13, q6_k = 14, bf16 = 30 };

template <int Bits>
struct Codes;
template <>
struct Codes<4> {
  uint8_t low[4][64];
};
template <>
struct Codes<5> {
  uint8_t low[4][64];
  uint8_t high[64];
};
template <>
struct Codes<6> {
  uint8_t low[4][64];
  uint8_t high[2][64];
};
template <>
struct Codes<8> {
  uint8_t full[8][64];
};

// Q4_0, Q5_0, Q8_0: weight = scale * (code - Offset), one half-precision scale a group. Two groups a block keep
// every vector on one cache line; an odd last group is padded with zero scales, so that every quantised matrix of
// equal columns takes the same activations.
template <int Bits_, int OffsetShift>
struct ScaleBlock {
  static constexpr int Bits = Bits_, offset_shift = OffsetShift;
  static constexpr size_t groups = 2;
  Codes<Bits> codes[groups];
  uint16_t scale[groups][lanes];
};

// Q4_1, Q5_1: weight = scale * code + minimum.
template <int Bits_>
struct MinimumBlock {
  static constexpr int Bits = Bits_, offset_shift = 0;
  static constexpr size_t groups = 2;
  Codes<Bits> codes[groups];
  uint16_t scale[groups][lanes], minimum[groups][lanes];
};

// Q4_K, Q5_K: weight = super_scale * scale * code - super_minimum * minimum.
template <int Bits_>
struct SuperBlock {
  static constexpr int Bits = Bits_, offset_shift = 0;
  static constexpr size_t groups = 8;
  Codes<Bits> codes[groups];
  uint8_t scale[groups][lanes], minimum[groups][lanes];
  uint16_t super_scale[lanes], super_minimum[lanes];
};

// Q6_K: weight = super_scale * scale * (code - 32), one signed scale for each half of a group.
struct HalvesBlock {
  static constexpr int Bits = 6, offset_shift = 5;
  static constexpr size_t groups = 8;
  Codes<Bits> codes[groups];
  int8_t scale[groups][2][lanes];
  uint16_t super_scale[lanes];
  uint8_t padding[32];
};

// F32, F16, BF16: one vector of sixteen rows for each k.
struct F32Block {
  float row[lanes];
};
struct F16Block {
  uint16_t row[lanes];
};
struct Bf16Block {
  uint16_t row[lanes];
};

using Q4_0Block = ScaleBlock<4, 3>;
using Q5_0Block = ScaleBlock<5, 4>;
using Q8_0Block = ScaleBlock<8, 7>;
using Q4_1Block = MinimumBlock<4>;
using Q5_1Block = MinimumBlock<5>;
using Q4_KBlock = SuperBlock<4>;
using Q5_KBlock = SuperBlock<5>;
using Q6_KBlock = HalvesBlock;

static_assert(sizeof(Q4_0Block) == 9 * 64 && sizeof(Q5_0Block) == 11 * 64 && sizeof(Q8_0Block) == 17 * 64);
static_assert(sizeof(Q4_1Block) == 10 * 64 && sizeof(Q5_1Block) == 12 * 64);
static_assert(sizeof(Q4_KBlock) == 37 * 64 && sizeof(Q5_KBlock) == 45 * 64 && sizeof(Q6_KBlock) == 53 * 64);

// Activations of one group for a tile of Rows rows: int8 values with one scale a row, and what the offsets and
// minimums of the weights need. Rounded to nearest even from value / scale, scale = largest magnitude / 127.
template <int Rows>
struct ActivationGroup {
  int8_t value[Rows][group];
  float scale[Rows];
  float scaled_sum[Rows];        // scale * sum of the 32 values
  int32_t negative_sum[3][Rows]; // minus the sum of values 0..15, of 16..31, of all
};

inline constexpr size_t activation_bytes_per_row_group = sizeof(ActivationGroup<1>);
static_assert(sizeof(ActivationGroup<8>) == 8 * activation_bytes_per_row_group && activation_bytes_per_row_group == 52);

// Calls visit.template operator()<Block>() with the block type of a quantised format; false for a float format.
template <class Visit>
bool with_quantised_block(Format format, Visit&& visit) {
  switch (format) {
    case Format::q4_0: visit.template operator()<Q4_0Block>(); return true;
    case Format::q4_1: visit.template operator()<Q4_1Block>(); return true;
    case Format::q5_0: visit.template operator()<Q5_0Block>(); return true;
    case Format::q5_1: visit.template operator()<Q5_1Block>(); return true;
    case Format::q8_0: visit.template operator()<Q8_0Block>(); return true;
    case Format::q4_k: visit.template operator()<Q4_KBlock>(); return true;
    case Format::q5_k: visit.template operator()<Q5_KBlock>(); return true;
    case Format::q6_k: visit.template operator()<Q6_KBlock>(); return true;
    default: return false;
  }
}

}  // namespace borrador
