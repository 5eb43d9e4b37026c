// The blocks of weights in a GGUF file, decoded group by group.
#pragma once
#include <cstring>

#include "packed.h"

namespace borrador {

inline uint16_t half_at(const uint8_t* p) {
  uint16_t h;
  std::memcpy(&h, p, 2);
  return h;
}

// One group of 32 weights as it is read from a file, before it is spread over the lanes. Halves keep their bits.
struct Group {
  uint8_t code[group];
  uint16_t scale = 0, minimum = 0;                 // the group's own, or the super block's, in the block's 16-bit format
  uint8_t small_scale[2] = {}, small_minimum = 0;  // integer scales of super blocks (Q2_K, Q3_K, Q6_K: one for each half)
};

// --- the blocks of a GGUF file -------------------------------------------------------------------------------------
// Each reader knows how many weights and bytes a block has and decodes group g of a block.

inline void read_nibbles(const uint8_t* low, uint8_t* code) {
  for (size_t i = 0; i < 16; ++i) code[i] = low[i] & 15, code[16 + i] = low[i] >> 4;
}

// Q4_0, and IQ4_NL whose codes go through a table later.
struct Q4_0Reader {
  static constexpr size_t bytes = 18, groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = half_at(p);
    read_nibbles(p + 2, out.code);
  }
};

struct Mxfp4Reader {
  static constexpr size_t bytes = 17, groups = 1;
  // The scale is 2^(e - 127), halved because the table is doubled; the least two are subnormal bfloat16 numbers.
  static uint16_t bfloat_scale(uint8_t e) { return uint16_t(e < 2 ? 0x20 << e : (e - 1) << 7); }
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = bfloat_scale(p[0]);
    read_nibbles(p + 1, out.code);
  }
};

struct Q4_1Reader {
  static constexpr size_t bytes = 20, groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = half_at(p);
    out.minimum = half_at(p + 2);
    read_nibbles(p + 4, out.code);
  }
};

inline void read_five_bits(const uint8_t* high, const uint8_t* low, uint8_t* code) {
  uint32_t bits;
  std::memcpy(&bits, high, 4);
  for (size_t i = 0; i < 16; ++i) {
    code[i] = uint8_t((low[i] & 15) | ((bits >> i & 1) << 4));
    code[16 + i] = uint8_t((low[i] >> 4) | ((bits >> (i + 16) & 1) << 4));
  }
}

struct Q5_0Reader {
  static constexpr size_t bytes = 22, groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = half_at(p);
    read_five_bits(p + 2, p + 6, out.code);
  }
};

struct Q5_1Reader {
  static constexpr size_t bytes = 24, groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = half_at(p);
    out.minimum = half_at(p + 2);
    read_five_bits(p + 4, p + 8, out.code);
  }
};

struct Q8_0Reader {
  static constexpr size_t bytes = 34, groups = 1;
  static void read(const uint8_t* p, size_t, Group& out) {
    out.scale = half_at(p);
    for (size_t i = 0; i < group; ++i) out.code[i] = p[2 + i] ^ 0x80;  // signed value + 128
  }
};

// Q2_K and Q3_K: 128 weights share 32 bytes, a pair of bits in each for every group.
inline void read_two_bits(const uint8_t* low, size_t g, uint8_t* code) {
  for (size_t i = 0; i < group; ++i) code[i] = low[g / 4 * 32 + i] >> (2 * (g % 4)) & 3;
}

struct Q2_KReader {
  static constexpr size_t bytes = 84, groups = 8;
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p + 80);
    out.minimum = half_at(p + 82);
    out.small_scale[0] = p[2 * g];
    out.small_scale[1] = p[2 * g + 1];
    read_two_bits(p + 16, g, out.code);
  }
};

struct Q3_KReader {
  static constexpr size_t bytes = 110, groups = 8;
  // Scale k of sixteen: four low bits in the first eight bytes, two high ones in the last four; 32 stands for 0.
  static uint8_t small_scale(const uint8_t* packed, size_t k) {
    const int low = packed[k % 8] >> (k < 8 ? 0 : 4) & 15, high = packed[8 + k % 4] >> (2 * (k / 4)) & 3;
    return uint8_t((low | (high << 4)) - 32);
  }
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p + 108);
    out.small_scale[0] = small_scale(p + 96, 2 * g);
    out.small_scale[1] = small_scale(p + 96, 2 * g + 1);
    read_two_bits(p + 32, g, out.code);
    for (size_t i = 0; i < group; ++i) out.code[i] |= uint8_t((p[i] >> g & 1) << 2);
  }
};

struct Iq4XsReader {
  static constexpr size_t bytes = 136, groups = 8;
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p);
    const int low = p[4 + g / 2] >> (g % 2 ? 4 : 0) & 15, high = half_at(p + 2) >> (2 * g) & 3;
    out.small_scale[0] = uint8_t((low | (high << 4)) - 32);
    read_nibbles(p + 8 + 16 * g, out.code);
  }
};

// Q4_K and Q5_K share twelve bytes of 6-bit scales and minimums.
inline void read_small_scales(const uint8_t* packed, size_t g, Group& out) {
  if (g < 4) {
    out.small_scale[0] = packed[g] & 63;
    out.small_minimum = packed[g + 4] & 63;
  } else {
    out.small_scale[0] = uint8_t((packed[g + 4] & 15) | ((packed[g - 4] >> 6) << 4));
    out.small_minimum = uint8_t((packed[g + 4] >> 4) | ((packed[g] >> 6) << 4));
  }
}

struct Q4_KReader {
  static constexpr size_t bytes = 144, groups = 8;
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p);
    out.minimum = half_at(p + 2);
    read_small_scales(p + 4, g, out);
    const uint8_t* low = p + 16 + g / 2 * 32;
    const int shift = g % 2 ? 4 : 0;
    for (size_t i = 0; i < group; ++i) out.code[i] = low[i] >> shift & 15;
  }
};

struct Q5_KReader {
  static constexpr size_t bytes = 176, groups = 8;
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p);
    out.minimum = half_at(p + 2);
    read_small_scales(p + 4, g, out);
    const uint8_t *high = p + 16, *low = p + 48 + g / 2 * 32;
    const int shift = g % 2 ? 4 : 0;
    for (size_t i = 0; i < group; ++i) out.code[i] = uint8_t((low[i] >> shift & 15) | ((high[i] >> g & 1) << 4));
  }
};

struct Q6_KReader {
  static constexpr size_t bytes = 210, groups = 8;
  static void read(const uint8_t* p, size_t g, Group& out) {
    out.scale = half_at(p + 208);
    const size_t half = g / 4, quarter = g % 4;  // 128 weights share 64 low and 32 high bytes
    const uint8_t* low = p + half * 64 + quarter % 2 * 32;
    const uint8_t* high = p + 128 + half * 32;
    const int low_shift = quarter < 2 ? 0 : 4, high_shift = int(2 * quarter);
    for (size_t i = 0; i < group; ++i) out.code[i] = uint8_t((low[i] >> low_shift & 15) | ((high[i] >> high_shift & 3) << 4));
    out.small_scale[0] = p[192 + 2 * g];
    out.small_scale[1] = p[192 + 2 * g + 1];
  }
};

template <class Block>
struct ReaderOf;
template <> struct ReaderOf<Q4_0Block> { using type = Q4_0Reader; };
template <> struct ReaderOf<Q4_1Block> { using type = Q4_1Reader; };
template <> struct ReaderOf<Q5_0Block> { using type = Q5_0Reader; };
template <> struct ReaderOf<Q5_1Block> { using type = Q5_1Reader; };
template <> struct ReaderOf<Q8_0Block> { using type = Q8_0Reader; };
template <> struct ReaderOf<Q2_KBlock> { using type = Q2_KReader; };
template <> struct ReaderOf<Q3_KBlock> { using type = Q3_KReader; };
template <> struct ReaderOf<Q4_KBlock> { using type = Q4_KReader; };
template <> struct ReaderOf<Q5_KBlock> { using type = Q5_KReader; };
template <> struct ReaderOf<Q6_KBlock> { using type = Q6_KReader; };
template <> struct ReaderOf<Iq4NlBlock> { using type = Q4_0Reader; };
template <> struct ReaderOf<Iq4XsBlock> { using type = Iq4XsReader; };
template <> struct ReaderOf<Mxfp4Block> { using type = Mxfp4Reader; };

}  // namespace borrador
