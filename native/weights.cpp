#include "weights.h"

#include <algorithm>
#include <cstring>

#include "float16.h"
#include "gguf_blocks.h"
#include "rounding.h"

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

// Calls copy(in block, in group) for each scale and minimum that group g of a block has for a lane.
template <class Block, class Scales, class Copy>
void copy_scales(Block& block, size_t g, size_t lane, Scales& one, Copy&& copy) {
  if constexpr (requires { block.super_scale; }) {
    copy(block.super_scale[lane], one.scale);
    if constexpr (requires { block.super_minimum; }) copy(block.super_minimum[lane], one.minimum);
    if constexpr (requires { block.minimum; }) copy(block.minimum[g / 2][lane][g % 2], one.small_minimum);
    if constexpr (Block::halves)
      for (size_t half = 0; half < 2; ++half) copy(block.half_scale[g / 2][half][lane][g % 2], one.small_scale[half]);
    else copy(block.scale[g / 2][lane][g % 2], one.small_scale[0]);
  } else {
    copy(block.scale[g][lane], one.scale);
    if constexpr (requires { block.minimum; }) copy(block.minimum[g][lane], one.minimum);
  }
}

template <class Block>
Group group_of(const Block& block, size_t g, size_t lane) {
  Group one;
  for (size_t i = 0; i < group; ++i) one.code[i] = code_at(block.codes[g], i / 4, 4 * lane + i % 4);
  copy_scales(block, g, lane, one, [](auto& in_block, auto& in_group) { std::memcpy(&in_group, &in_block, sizeof in_group); });
  return one;
}

template <class Block, class Reader>
void repack_strip(const uint8_t* source, const Matrix& matrix, size_t strip) {
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
        copy_scales(blocks[b], g, lane, one, [](auto& in_block, auto& in_group) { std::memcpy(&in_block, &in_group, sizeof in_block); });
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
    for (size_t g = 0; g < columns / group; ++g)
      dequantise<Block>(group_of(blocks[g / Block::groups], g % Block::groups, lane), out + g * group);
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

bool can_repack(Format stored, Format kept, size_t columns) {
  return is_supported(uint32_t(stored)) && (stored == kept || (kept == Format::q4_0 && columns % group == 0));
}

void repack(const uint8_t* source, Format stored, Matrix& matrix, ThreadPool& pool) {
  const auto repack_strips = [&](auto&& one_strip) {
    pool.for_range(matrix.strips(), 4, [&](size_t begin, size_t end, size_t) {
      for (size_t strip = begin; strip < end; ++strip) one_strip(source, matrix, strip);
    });
  };
  if (stored != matrix.format) {
    const bool done = with_quantised_block(stored, [&]<class Block>() { repack_strips(repack_strip<Q4_0Block, Rounded<Block>>); });
    if (done) return;
    if (stored == Format::f32) repack_strips(repack_strip<Q4_0Block, RoundedFloats<F32>>);
    if (stored == Format::f16) repack_strips(repack_strip<Q4_0Block, RoundedFloats<F16>>);
    if (stored == Format::bf16) repack_strips(repack_strip<Q4_0Block, RoundedFloats<Bf16>>);
    return;
  }
  const bool done = with_quantised_block(stored, [&]<class Block>() { repack_strips(repack_strip<Block, typename ReaderOf<Block>::type>); });
  if (done) return;
  if (stored == Format::f32) repack_strips(repack_float_strip<uint32_t>);
  else repack_strips(repack_float_strip<uint16_t>);
}

}  // namespace borrador
