#include "rope.h"

#include "elementary.h"

namespace borrador {

std::vector<double> rope_frequencies(const RopeShape& rope, size_t dim, std::span<const float> divisors) {
  std::vector<double> frequencies(dim / 2);
  const double log_base = same_log(rope.base);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double divisor = divisors.empty() ? 1.0 : double(divisors[i]);
    frequencies[i] = rope.scale * same_exp(-2.0 * double(i) / double(dim) * log_base) / divisor;
  }
  return frequencies;
}

void rope_table(std::span<const double> frequencies, size_t position, double magnitude, float* table) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const Turn turn = same_turn(double(position) * frequencies[i]);
    table[i] = float(turn.cosine * magnitude);
    table[frequencies.size() + i] = float(turn.sine * magnitude);
  }
}

void rotate(float* head, const float* table, size_t pairs, bool interleaved) {
  const size_t apart = interleaved ? 1 : pairs, step = interleaved ? 2 : 1;
  const float *cosine = table, *sine = table + pairs;
  for (size_t i = 0; i < pairs; ++i) {
    float &first = head[i * step], &second = head[i * step + apart];
    const float x = first, y = second;
    first = x * cosine[i] - y * sine[i];
    second = x * sine[i] + y * cosine[i];
  }
}

}  // namespace borrador
