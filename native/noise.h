// The noise behind seeded draws: a function of seed, position and token, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace borrador {

// What all tokens of a position share. The state is where a SplitMix64 generator (Steele, Lea, Flood 2014) starts that
// belongs to the position: mix(mix(seed + golden) + position * golden), mix being its output function and golden its
// increment. The two 32-bit keys are the halves, upper first, of its output number 2^32.
NoiseKey noise_key(std::uint64_t seed, std::uint64_t position);

// The upper 32 of a token's random bits, see `noise_bits`.
std::uint32_t noise_word(const NoiseKey& key, std::uint32_t token);

// 52 random bits of a token. The upper 32 come from a hash of 32-bit words that runs in vectors: the token plus the first
// key, and with x ^= x >> 17, x *= m0, x ^= second key, x ^= x >> 11, x *= m1, x ^= x >> 15, x *= m2, x ^= x >> 14 (the
// three-round hash of C. Wellons, hash-prospector, with a second key put in). The lower 20 are the uppermost bits of the
// generator's output number `token`.
std::uint64_t noise_bits(const NoiseKey& key, std::uint32_t token);

// (bits + 1/2) / 2^52, in (0, 1).
double uniform(const NoiseKey& key, std::uint32_t token);

// Gumbel noise, -log(-log(uniform)).
double gumbel(const NoiseKey& key, std::uint32_t token);

}  // namespace borrador
