// The layouts weights are repacked into at load: without loss, and near the width they have in the file.
//
// Sixteen output rows form a strip. Within a strip the columns (k) run in groups of 32, and lane r of every vector
// belongs to row r, so that one 64-byte load feeds sixteen dot products:
//
//   vector j of a group (64 bytes):   | row 0: k=4j..4j+3 | row 1: k=4j..4j+3 | ... | row 15 |     j = 0..7
//
//   2 bits:  low[h]   holds vectors 4h..4h+3 in bits 2j and 2j+1 (j = 0..3)                          h = 0, 1
//   3 bits:  + high   bit j of each byte is bit 2 of vector j's code
//   4 bits:  low[v]   nibbles 0-3 hold vector v, nibbles 4-7 vector v+4                             v = 0..3
//   5 bits:  + high   bit j of each byte is bit 4 of vector j's code
//   6 bits:  three[h][j] holds vector 4h+j in bits 0-5 (j = 0..2), and in bits 6-7 two bits of vector 4h+3, highest first
//   8 bits:  full[j]  one byte a code
//
// A code is unsigned; its weight is scale * (code - offset), scale * (table[code] - offset) or scale * code + minimum.
// Source of the block formats: the GGUF specification and ggml's format descriptions (see gguf_blocks.h).
#pragma once
#include <cstddef>
#include <cstdint>

namespace borrador {

inline constexpr size_t lanes = 16;
inline constexpr size_t group = 32;

// Values are GGML type numbers, as they stand in GGUF files.
enum class Format : uint32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13, q6_k = 14, iq4_nl = 20,
  iq4_xs = 23, bf16 = 30, mxfp4 = 39
};

template <int Bits>
struct Codes;
template <>
struct Codes<2> {
  uint8_t low[2][64];
};
template <>
struct Codes<3> {
  uint8_t low[2][64];
  uint8_t high[64];
};
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
  uint8_t three[2][3][64];
};
template <>
struct Codes<8> {
  uint8_t full[8][64];
};

// The integer that a code stands for: code - 2^OffsetShift, or the code itself where OffsetShift is 0.
template <int Bits_, int OffsetShift>
struct Linear {
  static constexpr int Bits = Bits_, offset_shift = OffsetShift, offset = OffsetShift ? 1 << OffsetShift : 0;
  static constexpr bool wide = OffsetShift == 7;  // code or table entry may be above 127
  static constexpr int value(int code) { return code - offset; }
};

// Four bits that choose from a table. Entries hold value + offset, so that products see unsigned bytes.
template <int OffsetShift>
struct Table : Linear<4, OffsetShift> {
  static constexpr int offset = Linear<4, OffsetShift>::offset;
  static constexpr uint8_t at(int value) { return uint8_t(value + offset); }
};
// The non-linear levels of ggml's IQ4 formats.
struct Iq4Levels : Table<7> {
  static constexpr uint8_t table[16] = {at(-127), at(-104), at(-83), at(-65), at(-49), at(-35), at(-22), at(-10),
                                        at(1),    at(13),   at(25),  at(38),  at(53),  at(69),  at(89),  at(113)};
  static constexpr int value(int code) { return table[code] - offset; }
};
// Twice the E2M1 numbers of the OCP Microscaling specification; both zeros are 0.
struct E2m1Levels : Table<4> {
  static constexpr uint8_t table[16] = {at(0), at(1),  at(2),  at(3),  at(4),  at(6),  at(8),  at(12),
                                        at(0), at(-1), at(-2), at(-3), at(-4), at(-6), at(-8), at(-12)};
  static constexpr int value(int code) { return table[code] - offset; }
};

// Q4_0, Q5_0, Q8_0, IQ4_NL, MXFP4: weight = scale * value(code), one scale a group in half precision or in bfloat16
// (which holds every power of two of MXFP4). Two groups a block keep every vector on one cache line; an odd last
// group is padded with zero scales, so that every quantised matrix of equal columns takes the same activations.
template <class Code, bool BfloatScales = false>
struct ScaleBlock : Code {
  static constexpr bool halves = false, bfloat_scales = BfloatScales;
  static constexpr size_t groups = 2;
  Codes<Code::Bits> codes[groups];
  uint16_t scale[groups][lanes];
};

// Q4_1, Q5_1: weight = scale * code + minimum.
template <int Bits>
struct MinimumBlock : Linear<Bits, 0> {
  static constexpr bool halves = false, bfloat_scales = false;
  static constexpr size_t groups = 2;
  Codes<Bits> codes[groups];
  uint16_t scale[groups][lanes], minimum[groups][lanes];
};

// The formats below have integer scales, whose products with sums of 32 (16) codes times values are added up as integers
// over the whole block, those of two groups by one instruction: the scales of a pair of groups lie side by side, and a sum
// loses its `sum_shift` lowest bits, so that it fits into sixteen and the whole block's sum into thirty-two.

// Q4_K, Q5_K: weight = super_scale * scale * code - super_minimum * minimum.
template <int Bits, int SumShift>
struct SuperBlock : Linear<Bits, 0> {
  static constexpr bool halves = false;
  static constexpr int sum_shift = SumShift;
  static constexpr size_t groups = 8;
  Codes<Bits> codes[groups];
  uint8_t scale[groups / 2][lanes][2], minimum[groups / 2][lanes][2];
  uint16_t super_scale[lanes], super_minimum[lanes];
};

// IQ4_XS: weight = super_scale * scale * value(code), one signed scale a group.
template <class Code, int SumShift>
struct SignedBlock : Code {
  static constexpr bool halves = false;
  static constexpr int sum_shift = SumShift;
  static constexpr size_t groups = 8;
  Codes<Code::Bits> codes[groups];
  int8_t scale[groups / 2][lanes][2];
  uint16_t super_scale[lanes];
  uint8_t padding[32];
};

// Q3_K, Q6_K: weight = super_scale * scale * value(code), one signed scale for each half of a group.
template <class Code, int SumShift>
struct HalvesBlock : Code {
  static constexpr bool halves = true;
  static constexpr int sum_shift = SumShift;
  static constexpr size_t groups = 8;
  Codes<Code::Bits> codes[groups];
  int8_t half_scale[groups / 2][2][lanes][2];
  uint16_t super_scale[lanes];
  uint8_t padding[32];
};

// Q2_K: weight = super_scale * scale * code - super_minimum * minimum, both four bits and for each half of a group:
// the scale in bits 0-3, the minimum in bits 4-7.
template <int Bits>
struct HalvesMinimumBlock : Linear<Bits, 0> {
  static constexpr bool halves = true;
  static constexpr int sum_shift = 0;
  static constexpr size_t groups = 8;
  Codes<Bits> codes[groups];
  uint8_t half_scale[groups / 2][2][lanes][2];
  uint16_t super_scale[lanes], super_minimum[lanes];
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

using Q4_0Block = ScaleBlock<Linear<4, 3>>;
using Q5_0Block = ScaleBlock<Linear<5, 4>>;
using Q8_0Block = ScaleBlock<Linear<8, 7>>;
using Iq4NlBlock = ScaleBlock<Iq4Levels>;
using Mxfp4Block = ScaleBlock<E2m1Levels, true>;
using Q4_1Block = MinimumBlock<4>;
using Q5_1Block = MinimumBlock<5>;
using Q4_KBlock = SuperBlock<4, 1>;
using Q5_KBlock = SuperBlock<5, 2>;
using Q2_KBlock = HalvesMinimumBlock<2>;
using Q3_KBlock = HalvesBlock<Linear<3, 2>, 0>;
using Q6_KBlock = HalvesBlock<Linear<6, 5>, 3>;
using Iq4XsBlock = SignedBlock<Iq4Levels, 4>;

static_assert(sizeof(Q4_0Block) == 9 * 64 && sizeof(Q5_0Block) == 11 * 64 && sizeof(Q8_0Block) == 17 * 64);
static_assert(sizeof(Iq4NlBlock) == 9 * 64 && sizeof(Mxfp4Block) == 9 * 64 && sizeof(Iq4XsBlock) == 35 * 64);
static_assert(sizeof(Q2_KBlock) == 21 * 64 && sizeof(Q3_KBlock) == 29 * 64);
static_assert(sizeof(Q4_1Block) == 10 * 64 && sizeof(Q5_1Block) == 12 * 64);
static_assert(sizeof(Q4_KBlock) == 37 * 64 && sizeof(Q5_KBlock) == 45 * 64 && sizeof(Q6_KBlock) == 53 * 64);

inline constexpr size_t block_groups = 8;  // groups of activations that share a float scale

// Activations of 256 columns for a tile of Rows rows: int8 values, and what the scales, offsets and minimums of the weights
// need. A group's scale is an integer from 1 to 127 times the block's, so that sums over groups stay integers:
//   value = nearest(x / (scale * group_scale)),  scale = largest magnitude of the block / 127^2,
//   group_scale = least integer for which no value exceeds 127.
// Minimums are multiplied with sums times group_scale, in units of the least power of two that makes them fit into sixteen
// bits: a fixed unit would be too coarse for the small groups beside one with outliers.
template <int Rows>
struct ActivationBlock {
  float scale[Rows];
  float sum_scale[Rows];                          // scale * the unit of the sums below
  float float_scale[block_groups][Rows];          // scale * group_scale
  float scaled_sum[block_groups][Rows];           // scale * group_scale * sum of the group's values
  int32_t negative_sum[block_groups][Rows];
  int32_t half_offset[block_groups][2][Rows];     // 4 - 32 * sum of values 0..15, of 16..31; see start_of_half
  int16_t group_scale[block_groups / 2][Rows][2];
  int16_t group_sum[block_groups / 2][Rows][2];   // group_scale * sum of the values, in that unit
  int16_t half_sum[block_groups / 2][2][Rows][2];  // the same of a half
  int8_t value[block_groups][Rows][group];
};

// Every field of a block of many rows begins at that multiple of its place in a block of one.
inline constexpr size_t activation_bytes_per_row_block = sizeof(ActivationBlock<1>);
static_assert(sizeof(ActivationBlock<8>) == 8 * activation_bytes_per_row_block && activation_bytes_per_row_block == 488);

// Calls visit.template operator()<Block>() with the block type of a quantised format; false for a float format.
template <class Visit>
bool with_quantised_block(Format format, Visit&& visit) {
  switch (format) {
    case Format::q4_0: visit.template operator()<Q4_0Block>(); return true;
    case Format::q4_1: visit.template operator()<Q4_1Block>(); return true;
    case Format::q5_0: visit.template operator()<Q5_0Block>(); return true;
    case Format::q5_1: visit.template operator()<Q5_1Block>(); return true;
    case Format::q8_0: visit.template operator()<Q8_0Block>(); return true;
    case Format::q2_k: visit.template operator()<Q2_KBlock>(); return true;
    case Format::q3_k: visit.template operator()<Q3_KBlock>(); return true;
    case Format::q4_k: visit.template operator()<Q4_KBlock>(); return true;
    case Format::q5_k: visit.template operator()<Q5_KBlock>(); return true;
    case Format::q6_k: visit.template operator()<Q6_KBlock>(); return true;
    case Format::iq4_nl: visit.template operator()<Iq4NlBlock>(); return true;
    case Format::iq4_xs: visit.template operator()<Iq4XsBlock>(); return true;
    case Format::mxfp4: visit.template operator()<Mxfp4Block>(); return true;
    default: return false;
  }
}

}  // namespace borrador
