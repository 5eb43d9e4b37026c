// Choosing tokens from one row of logits. Plain functions of arrays: no model, no Python.
//
// Every function reads a NaN as "never" and throws std::domain_error where nothing can be chosen: no finite logit, or a
// logit of plus infinity. Ties always go to the lowest token id. Results depend on the arguments alone and are the same on
// every machine, whatever its instruction set: sums have a fixed order, so compile this with -ffp-contract=off (and never
// with -ffast-math).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "row_edits.h"

namespace borrador {

struct KernelTable;

// What a request does to a row, in the order of llama.cpp's default chain: edits, top-k, typical-p, top-p and min-p, each
// on the probabilities at temperature 1 of what the one before it left, then the temperature.
struct Shape {
  double temperature = 1.0;  // above 0; values below 1e-6 act as 1e-6
  std::size_t top_k = 0;     // keep the k most likely; 0 keeps all
  double typical_p = 1.0;    // keep those whose -log p is closest to its mean, the fewest that reach it; in (0, 1]
  double top_p = 1.0;        // keep the fewest most likely whose share reaches top_p; in (0, 1]
  double min_p = 0.0;        // keep those at least min_p times as likely as the most likely; in [0, 1)
  Edits edits;
  const KernelTable* kernels = nullptr;  // null takes those of the best instruction set
};

// A distribution over some of the vocabulary; every other token has probability 0.
struct Distribution {
  std::vector<std::int32_t> ids;     // ascending; empty stands for the whole vocabulary
  std::vector<float> probabilities;  // sum to 1 up to rounding
};

struct Ranked {
  std::vector<std::int32_t> ids;
  std::vector<float> logits;
};

// The k largest logits, largest first; fewer where fewer are finite.
Ranked top_k(const float* logits, std::size_t size, std::size_t k);

// log(sum of e^logit) over a row: a token's log probability at temperature 1 is its logit less this.
double log_total(const float* logits, std::size_t size);

// The shaped distribution of a row.
Distribution shape(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions);

// The most likely token of what edits and shape leave, whatever the temperature.
std::int32_t pick_likeliest(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions);

// A draw from the shaped distribution by the Gumbel-max trick: argmax over its tokens of
// (logit - largest logit) / temperature + gumbel(noise_key(seed, position), token), in double; see noise.h.
// The same for the same row and seed, whoever asks.
std::int32_t pick_seeded(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions,
                         std::uint64_t seed, std::uint64_t position);

// The first index whose running sum of weights exceeds u times their total: a draw with probability weights[i] / total
// for u uniform in [0, 1). Weights are at least 0 and need not sum to 1. Throws std::domain_error if they sum to 0.
std::size_t pick(const float* weights, std::size_t size, double u);

}  // namespace borrador
