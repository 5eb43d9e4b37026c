#include "weights.h"

#include <algorithm>
#include <cstring>

#include "float16.h"

namespace borrador {

namespace {

uint16_t half_at(const uint8_t* p) {
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

void read_nibbles(const uint8_t* low, uint8_t* code) {
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

void read_five_bits(const uint8_t* high, const uint8_t* low, uint8_t* code) {
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
void read_two_bits(const uint8_t* low, size_t g, uint8_t* code) {
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
void read_small_scales(const uint8_t* packed, size_t g, Group& out) {
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

// --- codes into and out of the lanes -------------------------------------------------------------------------------

using Vectors = uint8_t[8][64];  // code vectors j = 0..7 of a group, sixteen rows

void pack(const Vectors& v, Codes<8>& out) { std::memcpy(out.full, v, sizeof out.full); }

template <int Bits>
void pack_two_bits(const Vectors& v, Codes<Bits>& out) {
  std::memset(out.low, 0, sizeof out.low);
  for (size_t j = 0; j < 8; ++j)
    for (size_t i = 0; i < 64; ++i) out.low[j / 4][i] |= uint8_t((v[j][i] & 3) << (2 * (j % 4)));
}

void pack(const Vectors& v, Codes<2>& out) { pack_two_bits(v, out); }

void pack(const Vectors& v, Codes<3>& out) {
  pack_two_bits(v, out);
  std::memset(out.high, 0, sizeof out.high);
  for (size_t j = 0; j < 8; ++j)
    for (size_t i = 0; i < 64; ++i) out.high[i] |= uint8_t((v[j][i] >> 2) << j);
}

template <int Bits>
void pack_low(const Vectors& v, Codes<Bits>& out) {
  for (size_t j = 0; j < 4; ++j)
    for (size_t i = 0; i < 64; ++i) out.low[j][i] = uint8_t((v[j][i] & 15) | (v[j + 4][i] << 4));
}

void pack(const Vectors& v, Codes<4>& out) { pack_low(v, out); }

void pack(const Vectors& v, Codes<5>& out) {
  pack_low(v, out);
  std::memset(out.high, 0, sizeof out.high);
  for (size_t j = 0; j < 8; ++j)
    for (size_t i = 0; i < 64; ++i) out.high[i] |= uint8_t((v[j][i] >> 4) << j);
}

void pack(const Vectors& v, Codes<6>& out) {
  pack_low(v, out);
  std::memset(out.high, 0, sizeof out.high);
  for (size_t j = 0; j < 8; ++j)
    for (size_t i = 0; i < 64; ++i) out.high[j / 4][i] |= uint8_t((v[j][i] >> 4) << (2 * (j % 4)));
}

template <int Bits>
uint8_t code_at(const Codes<Bits>& codes, size_t j, size_t byte) {
  if constexpr (Bits == 8) {
    return codes.full[j][byte];
  } else if constexpr (Bits < 4) {
    const uint8_t low = codes.low[j / 4][byte] >> (2 * (j % 4)) & 3;
    if constexpr (Bits == 3) return uint8_t(low | ((codes.high[byte] >> j & 1) << 2));
    return low;
  } else {
    const uint8_t low = codes.low[j % 4][byte] >> (j < 4 ? 0 : 4) & 15;
    if constexpr (Bits == 5) return uint8_t(low | ((codes.high[byte] >> j & 1) << 4));
    if constexpr (Bits == 6) return uint8_t(low | ((codes.high[j / 4][byte] >> (2 * (j % 4)) & 3) << 4));
    return low;
  }
}

template <class Block>
void store_scales(Block& block, size_t g, size_t lane, const Group& from) {
  if constexpr (requires { block.super_scale; }) {
    block.super_scale[lane] = from.scale;
    if constexpr (requires { block.super_minimum; }) block.super_minimum[lane] = from.minimum;
    if constexpr (requires { block.minimum; }) block.minimum[g][lane] = from.small_minimum;
    if constexpr (Block::halves) {
      for (size_t half = 0; half < 2; ++half) std::memcpy(&block.half_scale[g][half][lane], &from.small_scale[half], 1);
    } else {
      std::memcpy(&block.scale[g][lane], &from.small_scale[0], 1);
    }
  } else {
    block.scale[g][lane] = from.scale;
    if constexpr (requires { block.minimum; }) block.minimum[g][lane] = from.minimum;
  }
}

// Weight = scale * value(code) + minimum, as the formats define them, for row lookups.
struct Affine {
  float scale, minimum;
};

template <class Block>
Affine affine_of(const Block& block, size_t g, size_t lane, size_t half) {
  if constexpr (requires { block.super_scale; }) {
    const float super_scale = f16_to_f32(block.super_scale[lane]);
    float super_minimum = 0;
    if constexpr (requires { block.super_minimum; }) super_minimum = -f16_to_f32(block.super_minimum[lane]);
    if constexpr (Block::halves) {
      const int small = block.half_scale[g][half][lane];
      if constexpr (requires { block.super_minimum; }) return {super_scale * float(small & 15), super_minimum * float(small >> 4)};
      else return {super_scale * float(small), 0};
    } else {
      float minimum = 0;
      if constexpr (requires { block.minimum; }) minimum = super_minimum * float(block.minimum[g][lane]);
      return {super_scale * float(block.scale[g][lane]), minimum};
    }
  } else if constexpr (Block::bfloat_scales) {
    return {bf16_to_f32(block.scale[g][lane]), 0};
  } else {
    float minimum = 0;
    if constexpr (requires { block.minimum; }) minimum = f16_to_f32(block.minimum[g][lane]);
    return {f16_to_f32(block.scale[g][lane]), minimum};
  }
}

template <class Block>
void repack_strip(const uint8_t* source, const Matrix& matrix, size_t strip) {
  using Reader = typename ReaderOf<Block>::type;
  const size_t file_blocks = matrix.columns / (Reader::groups * group), row_bytes = file_blocks * Reader::bytes;
  const size_t total_groups = matrix.columns / group, count = matrix.blocks_per_strip();
  auto* blocks = reinterpret_cast<Block*>(matrix.data) + strip * count;
  for (size_t b = 0; b < count; ++b) {
    for (size_t g = 0; g < Block::groups; ++g) {
      const size_t index = b * Block::groups + g;
      Vectors vectors;
      for (size_t lane = 0; lane < lanes; ++lane) {
        const size_t row = strip * lanes + lane;
        Group one;
        if (row < matrix.rows && index < total_groups)
          Reader::read(source + row * row_bytes + index / Reader::groups * Reader::bytes, index % Reader::groups, one);
        else
          std::memset(one.code, 0, sizeof one.code);  // padding: scale 0
        for (size_t j = 0; j < 8; ++j) std::memcpy(vectors[j] + 4 * lane, one.code + 4 * j, 4);
        store_scales(blocks[b], g, lane, one);
      }
      pack(vectors, blocks[b].codes[g]);
    }
  }
}

template <class Element>
void repack_float_strip(const uint8_t* source, const Matrix& matrix, size_t strip) {
  auto* to = reinterpret_cast<Element*>(matrix.data) + strip * lanes * matrix.columns;
  for (size_t lane = 0; lane < lanes; ++lane) {
    const size_t row = strip * lanes + lane;
    for (size_t k = 0; k < matrix.columns; ++k) {
      Element value = 0;
      if (row < matrix.rows) std::memcpy(&value, source + (row * matrix.columns + k) * sizeof(Element), sizeof(Element));
      to[k * lanes + lane] = value;
    }
  }
}

size_t float_bytes(Format format) { return format == Format::f32 ? 4 : 2; }

}  // namespace

bool is_supported(uint32_t format) {
  const auto f = Format(format);
  return f == Format::f32 || f == Format::f16 || f == Format::bf16 || with_quantised_block(f, []<class Block>() {});
}

size_t gguf_bytes(Format format, size_t rows, size_t columns) {
  size_t bytes = rows * columns * float_bytes(format);
  with_quantised_block(format, [&]<class Block>() {
    using Reader = typename ReaderOf<Block>::type;
    bytes = rows * (columns / (Reader::groups * group)) * Reader::bytes;
  });
  return bytes;
}

size_t Matrix::blocks_per_strip() const {
  size_t count = columns;
  with_quantised_block(format, [&]<class Block>() { count = (columns + group * Block::groups - 1) / (group * Block::groups); });
  return count;
}

size_t Matrix::padded_groups() const {
  size_t groups = 0;
  with_quantised_block(format, [&]<class Block>() { groups = blocks_per_strip() * Block::groups; });
  return groups;
}

size_t Matrix::bytes() const {
  size_t block_bytes = lanes * float_bytes(format);
  with_quantised_block(format, [&]<class Block>() { block_bytes = sizeof(Block); });
  return strips() * blocks_per_strip() * block_bytes;
}

void Matrix::row(size_t index, float* out) const {
  const size_t strip = index / lanes, lane = index % lanes;
  const bool done = with_quantised_block(format, [&]<class Block>() {
    const auto* blocks = reinterpret_cast<const Block*>(data) + strip * blocks_per_strip();
    for (size_t k = 0; k < columns; ++k) {
      const size_t g = k / group, j = k % group / 4;
      const Block& block = blocks[g / Block::groups];
      const int code = code_at(block.codes[g % Block::groups], j, 4 * lane + k % 4);
      const Affine affine = affine_of(block, g % Block::groups, lane, j / 4);
      out[k] = affine.scale * float(Block::value(code)) + affine.minimum;
    }
  });
  if (done) return;
  for (size_t k = 0; k < columns; ++k) {
    const size_t at = (strip * columns + k) * lanes + lane;
    if (format == Format::f32) out[k] = reinterpret_cast<const float*>(data)[at];
    if (format == Format::f16) out[k] = f16_to_f32(reinterpret_cast<const uint16_t*>(data)[at]);
    if (format == Format::bf16) out[k] = bf16_to_f32(reinterpret_cast<const uint16_t*>(data)[at]);
  }
}

void repack(const uint8_t* source, Matrix& matrix, ThreadPool& pool) {
  pool.for_range(matrix.strips(), 4, [&](size_t begin, size_t end, size_t) {
    for (size_t strip = begin; strip < end; ++strip) {
      const bool done = with_quantised_block(matrix.format, [&]<class Block>() { repack_strip<Block>(source, matrix, strip); });
      if (done) continue;
      if (matrix.format == Format::f32) repack_float_strip<uint32_t>(source, matrix, strip);
      else repack_float_strip<uint16_t>(source, matrix, strip);
    }
  });
}

}  // namespace borrador
