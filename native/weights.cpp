#include "weights.h"

#include <algorithm>
#include <cstring>

#include "float16.h"
#include "gguf_blocks.h"

namespace borrador {

namespace {

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
  for (size_t half = 0; half < 2; ++half)
    for (size_t j = 0; j < 3; ++j)
      for (size_t i = 0; i < 64; ++i) out.three[half][j][i] = uint8_t(v[4 * half + j][i] | (v[4 * half + 3][i] >> (4 - 2 * j) & 3) << 6);
}

template <int Bits>
uint8_t code_at(const Codes<Bits>& codes, size_t j, size_t byte) {
  if constexpr (Bits == 8) {
    return codes.full[j][byte];
  } else if constexpr (Bits == 6) {
    const auto& three = codes.three[j / 4];
    if (j % 4 < 3) return three[j % 4][byte] & 63;
    return uint8_t((three[0][byte] >> 6) << 4 | (three[1][byte] >> 6) << 2 | three[2][byte] >> 6);
  } else if constexpr (Bits < 4) {
    const uint8_t low = codes.low[j / 4][byte] >> (2 * (j % 4)) & 3;
    if constexpr (Bits == 3) return uint8_t(low | ((codes.high[byte] >> j & 1) << 2));
    return low;
  } else {
    const uint8_t low = codes.low[j % 4][byte] >> (j < 4 ? 0 : 4) & 15;
    if constexpr (Bits == 5) return uint8_t(low | ((codes.high[byte] >> j & 1) << 4));
    return low;
  }
}

template <class Block>
void store_scales(Block& block, size_t g, size_t lane, const Group& from) {
  if constexpr (requires { block.super_scale; }) {
    block.super_scale[lane] = from.scale;
    if constexpr (requires { block.super_minimum; }) block.super_minimum[lane] = from.minimum;
    if constexpr (requires { block.minimum; }) block.minimum[g / 2][lane][g % 2] = from.small_minimum;
    if constexpr (Block::halves)
      for (size_t half = 0; half < 2; ++half) std::memcpy(&block.half_scale[g / 2][half][lane][g % 2], &from.small_scale[half], 1);
    else std::memcpy(&block.scale[g / 2][lane][g % 2], &from.small_scale[0], 1);
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
      const int small = block.half_scale[g / 2][half][lane][g % 2];
      if constexpr (requires { block.super_minimum; }) return {super_scale * float(small & 15), super_minimum * float(small >> 4)};
      else return {super_scale * float(small), 0};
    } else {
      float minimum = 0;
      if constexpr (requires { block.minimum; }) minimum = super_minimum * float(block.minimum[g / 2][lane][g % 2]);
      return {super_scale * float(block.scale[g / 2][lane][g % 2]), minimum};
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

bool Matrix::quantised() const { return with_quantised_block(format, []<class Block>() {}); }

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

// In a block each lane has four bytes of every 64 of the codes, and two of every 32 behind them. A block of floats is one
// vector of the lanes.
void copy_row(const Matrix& from, size_t row, Matrix& to, size_t place) {
  size_t codes = float_bytes(from.format) == 4 ? 64 : 0, block = lanes * float_bytes(from.format);
  with_quantised_block(from.format, [&]<class Block>() { codes = sizeof(Block::codes), block = sizeof(Block); });
  const size_t strip_bytes = from.blocks_per_strip() * block, source = row % lanes, target = place % lanes;
  const uint8_t* in = from.data + row / lanes * strip_bytes;
  uint8_t* out = to.data + place / lanes * strip_bytes;
  for (size_t b = 0; b < from.blocks_per_strip(); ++b, in += block, out += block) {
    for (size_t at = 0; at < codes; at += 64) std::memcpy(out + at + 4 * target, in + at + 4 * source, 4);
    for (size_t at = codes; at < block; at += 32) std::memcpy(out + at + 2 * target, in + at + 2 * source, 2);
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
