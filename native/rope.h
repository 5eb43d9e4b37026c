// Rotary positions (Su et al., arXiv 2104.09864).
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace borrador {

struct RopeShape {
  double base = 10000, scale = 1;  // scale multiplies positions
};

// Radians that each pair of a head turns by from one position to the next: scale * base^(-2 pair / dim), divided by the
// pair's divisor where there are any.
std::vector<double> rope_frequencies(const RopeShape& rope, size_t dim, std::span<const float> divisors);

// Cosines of all pairs, then sines, each times `magnitude`.
void rope_table(std::span<const double> frequencies, size_t position, double magnitude, float* table);

// Turns the pairs of a head: (2i, 2i + 1) where interleaved, else (i, i + pairs).
void rotate(float* head, const float* table, size_t pairs, bool interleaved);

}  // namespace borrador
