// The functions an instruction set provides. Every one of them gives the same bits on every instruction set: integer
// sums are exact, and floating-point steps are spelled out (fused multiply-add where written, fixed lane order).
#pragma once
#include <cstddef>
#include <cstdint>

#include "../cpu.h"
#include "../packed.h"

namespace borrador {

// Sums of e^x and x e^x.
struct Mass {
  double total, moment;
};

// What the noise of a position is made from, see noise.h.
struct NoiseKey {
  uint32_t first, second;
  uint64_t state;
};
inline constexpr uint32_t noise_multipliers[] = {0xed5ad4bb, 0xac4c1b51, 0x31848bab};

// Where a race for the best score stands, in powers of two: a logit's score is (logit - largest) * scale plus its noise.
struct RaceBounds {
  float largest, scale, best_log2;
};

inline constexpr size_t vocabulary_block = 64;

// Positions whose softmax is taken together, and folded into what came before.
inline constexpr size_t attention_chunk = 256;

// Bounds of attention's integers. A sum of products of a query and a key is at most the product of their norms, rounding
// errors included, for heads of up to 1024 elements (Cauchy and Schwarz); one of weights and values at most the sum of the
// weights times the largest value. Both stay below 2^31. Sums of two integers, of which kernels may make use, fit 16 bits.
inline constexpr float most_key = 16383, most_key_norm = 46300;  // of queries too
inline constexpr float most_value = 8191;
inline constexpr float most_weight = 16383, most_weight_sum = 262000;
inline constexpr float least_weight_unit = 1e-30f;  // its inverse is finite

// How the terms of integer dot products lie, in units of int16.
struct DotTerms {
  size_t pairs;  // of terms, even
  size_t stride, block_stride, factor_stride;
  // Memory that is read next: kernels may fetch it while they compute.
  const int16_t* next = nullptr;
  size_t next_bytes = 0;
};

// The positions of a chunk, as one query vector sees them.
struct ChunkScores {
  const int32_t* dots;                   // [padded]
  const float *key_units, *value_units;  // [padded]
  float query_unit, soft_cap;            // for scores in base 2; soft_cap 0: none
  size_t begin, end, padded;             // positions [begin, end) are seen, at least one
};

// What comes out: sum of 2^(score - maximum), and what the weights count. A weight is round(2^(score - maximum) *
// value_unit / unit), 0 where a position is not seen.
struct ChunkWeights {
  float maximum, sum, unit;
};

struct KernelTable {
  const char* name;
  // Rows that share one sweep over the weights. Activations are laid out in tiles of this many rows; the last tile
  // holds the rest.
  size_t tile_rows;

  // out[row * out_stride + 16 * strip + lane] for strips [begin, end) of a matrix and all rows.
  void (*matmul)(Format format, const uint8_t* weights, size_t blocks_per_strip, size_t begin, size_t end,
                 const uint8_t* activations, size_t rows, float* out, size_t out_stride);
  // Quantises blocks [begin, end) of one row of x (columns values, zero beyond) into row `row` of a tile of `tile` rows.
  void (*quantise)(const float* x, size_t columns, size_t begin, size_t end, uint8_t* activations, size_t row, size_t tile);

  // out = x * weight / sqrt(mean(x^2) + epsilon).
  void (*rms_norm)(const float* x, const float* weight, size_t count, float epsilon, float* out);
  // x += y.
  void (*add)(float* x, const float* y, size_t count);
  // x += y * factor, fused.
  void (*add_scaled)(float* x, const float* y, float factor, size_t count);
  // out = silu(gate) * up.
  void (*silu_mul)(const float* gate, const float* up, size_t count, float* out);
  // out = gelu(gate) * up, in the tanh approximation.
  void (*gelu_mul)(const float* gate, const float* up, size_t count, float* out);
  // x = cap * tanh(x / cap).
  void (*soft_cap)(float* x, size_t count, float cap);

  // The products of attention, exact in integers: out[i * out_stride + 16 * b + lane] (+)= sum over t < pairs of
  // row[2 * lane] * factor[2 * t] + row[2 * lane + 1] * factor[2 * t + 1] with row = matrix + b * block_stride + t * stride and
  // factor = factors + i * factor_stride, for i < vectors and b < blocks. The bounds below keep sums within 32 bits; sums of
  // damaged numbers wrap around.
  void (*dots)(const DotTerms& terms, const int16_t* matrix, size_t blocks, const int16_t* factors, size_t vectors, int32_t* out,
               size_t out_stride, bool accumulate);
  // out = dots * unit, for whole vectors.
  void (*scale_dots)(const int32_t* dots, float unit, size_t count, float* out);
  // Rounds x to multiples of the unit that it returns: the least one for which no integer is above `most` in magnitude and
  // their norm is at most `most_norm`, up to rounding.
  float (*to_int16)(const float* x, size_t count, float most, float most_norm, int16_t* out);
  // The softmax of a chunk's scores, in base 2, for one vector.
  ChunkWeights (*weigh_chunk)(const ChunkScores& chunk, int16_t* weights);
  // Folds a chunk (maximum, sum, out) into a running state: both are rescaled to the larger maximum and added.
  void (*fold_chunk)(float* state_maximum, float* state_sum, float* state_out, float maximum, float sum, const float* out, size_t count);

  // The largest of x, not-a-numbers left out; minus infinity where there is nothing else.
  float (*largest)(const float* x, size_t count);
  // The sum of e^(x - maximum) * factor, where `factor` may be null for ones; x below maximum - 87 and not-a-numbers count
  // next to nothing (1e-38).
  float (*exp_sum)(const float* x, const float* factor, size_t count, float maximum);
  // The largest of every 64 logits of a row. Not-a-numbers count as minus infinity.
  void (*block_maxima)(const float* row, size_t size, float* maxima);
  // e^((logit - largest) * scale) of every logit of a row, written to `out` unless that is null, and sums over them. Exactly
  // 0 where the exponent is below -87 or not a number. No logit is above `largest`.
  Mass (*weigh)(const float* row, size_t size, float largest, float scale, float* out);
  // x *= factor.
  void (*scale_by)(float* x, size_t count, float factor);
  // The first sixteen tokens at or behind `begin`, a multiple of sixteen, that hold one that may win the race: where they
  // begin, and a bit for each such token; `size` where there are none. Some that lose are among them, no winner is missed.
  size_t (*next_contenders)(const float* row, size_t begin, size_t size, const NoiseKey& key, const RaceBounds& bounds, uint32_t* found);

  // Does `rounds` times peak_macs multiply-accumulates of bytes without touching memory, for measuring what the integer
  // units give at best. The result keeps the compiler from leaving them out.
  int32_t (*integer_peak)(size_t rounds);
};

const KernelTable& portable_kernels();
const KernelTable& neon_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avxvnni_kernels();
const KernelTable& avx512vnni_kernels();

// The functions of an instruction set that this build holds, else the portable ones.
const KernelTable& kernels_for(Isa isa);

inline constexpr size_t peak_dots = 8;  // sums that the rounds of integer_peak keep under way
inline constexpr size_t peak_macs = peak_dots * 4 * lanes;

// Quantises blocks [first, last) of tile `tile` of `count` rows of activations into the tiles that matmul reads. Rows hold
// `columns` values; every row gets the same bits whatever the others are. Threads that share a tile should take blocks
// apart, not rows: the rows of a block share cache lines.
void quantise_tile(const KernelTable& kernels, const float* values, size_t columns, size_t tile, size_t count, size_t first, size_t last,
                   uint8_t* activations);

// Where row `row` of `count` belongs: its tile's place, its place in the tile and the tile's rows.
struct TilePlace {
  size_t offset, row, rows;
};
TilePlace place_row(const KernelTable& kernels, size_t columns, size_t row, size_t count);

// Blocks of activations that a row of `columns` values is padded to.
inline size_t activation_blocks(size_t columns) { return (columns + block_groups * group - 1) / (block_groups * group); }

}  // namespace borrador
