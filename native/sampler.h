// Choosing tokens from one row of logits. Plain functions of arrays: no state, no model, no Python.
//
// Every function reads a NaN as "never" and throws std::domain_error where nothing can be chosen: no finite logit, or a
// logit of plus infinity. Ties always go to the lowest token id. Results depend on the arguments alone: sums have a fixed
// order, so compile this file with -ffp-contract=off (and never with -ffast-math) to keep them equal across machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace borrador {

// What narrows and flattens a distribution, applied in the order of llama.cpp's default chain: top-k, top-p and min-p on
// the probabilities at temperature 1, then the temperature.
struct Shape {
    double temperature = 1.0;  // above 0; values below 1e-6 act as 1e-6
    std::size_t top_k = 0;     // keep the k most likely; 0 keeps all
    double top_p = 1.0;        // keep the fewest most likely whose share reaches top_p, of what top_k left; in (0, 1]
    double min_p = 0.0;        // keep those at least min_p times as likely as the most likely; in [0, 1)
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

// The most likely token of `size` logits. Reads each logit once and writes nothing.
std::int32_t argmax(const float* logits, std::size_t size);

// The k largest logits, largest first; fewer where fewer are finite.
Ranked top_k(const float* logits, std::size_t size, std::size_t k);

// The shaped distribution of a row.
Distribution shape(const float* logits, std::size_t size, const Shape& shape);

// The uniform variate in (0, 1) that belongs to a token at a position under a seed: output number `token` of the
// SplitMix64 generator (Steele, Lea, Flood 2014) whose state starts at mix(mix(seed + golden) + position * golden), where
// mix is its output function and golden its increment; the upper 52 bits b give (b + 1/2) / 2^52.
double uniform(std::uint64_t seed, std::uint64_t position, std::int32_t token);

// A draw from the shaped distribution by the Gumbel-max trick: argmax over its tokens of
// (logit - largest logit) / temperature - log(-log(uniform(seed, position, token))), in double.
// The same for the same row and seed, whoever asks.
std::int32_t pick_seeded(const float* logits, std::size_t size, const Shape& shape, std::uint64_t seed,
                         std::uint64_t position);

// The first index whose running sum of weights exceeds u times their total: a draw with probability weights[i] / total
// for u uniform in [0, 1). Weights are at least 0 and need not sum to 1. Throws std::domain_error if they sum to 0.
std::size_t pick(const float* weights, std::size_t size, double u);

}  // namespace borrador
