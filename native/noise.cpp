#include "noise.h"

#include "elementary.h"

namespace borrador {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t output(std::uint64_t state, std::uint64_t number) { return mix(state + (number + 1) * kGolden); }

}  // namespace

NoiseKey noise_key(std::uint64_t seed, std::uint64_t position) {
  const std::uint64_t state = mix(mix(seed + kGolden) + position * kGolden);
  const std::uint64_t keys = output(state, std::uint64_t{1} << 32);
  return {static_cast<std::uint32_t>(keys >> 32), static_cast<std::uint32_t>(keys), state};
}

std::uint32_t noise_word(const NoiseKey& key, std::uint32_t token) {
  std::uint32_t x = token + key.first;
  x = (x ^ (x >> 17)) * noise_multipliers[0] ^ key.second;
  x = (x ^ (x >> 11)) * noise_multipliers[1];
  x = (x ^ (x >> 15)) * noise_multipliers[2];
  return x ^ (x >> 14);
}

std::uint64_t noise_bits(const NoiseKey& key, std::uint32_t token) {
  return std::uint64_t{noise_word(key, token)} << 20 | output(key.state, token) >> 44;
}

double uniform(const NoiseKey& key, std::uint32_t token) {
  return (static_cast<double>(noise_bits(key, token)) + 0.5) * 0x1p-52;
}

double gumbel(const NoiseKey& key, std::uint32_t token) { return -same_log(-same_log(uniform(key, token))); }

}  // namespace borrador
