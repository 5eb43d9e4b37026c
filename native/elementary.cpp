#include "elementary.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace borrador {

namespace {

constexpr double ln_2_high = 0x1.62e42fefa39efp-1, ln_2_low = 0x1.abc9e3b39803fp-56;
constexpr double half_pi_high = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;

// x - n * (high + low). With n = x / high rounded the first step is exact.
double reduce(double x, double n, double high, double low) { return std::fma(-n, low, std::fma(-n, high, x)); }

// Coefficients of x^first, x^(first + step), ... in the series of e^x, their signs alternating where asked.
template <size_t Count>
constexpr std::array<double, Count> exponential_series(int first, int step, double sign) {
  std::array<double, Count> coefficients{};
  double factorial = 1, factor = 1;
  for (int k = 2; k <= first; ++k) factorial *= k;
  for (size_t i = 0; i < Count; ++i, factor *= sign) {
    coefficients[i] = factor / factorial;
    for (int k = 1; k <= step; ++k) factorial *= double(first + int(i) * step + k);
  }
  return coefficients;
}

template <size_t Count>
double polynomial(const std::array<double, Count>& coefficients, double x) {
  double value = coefficients[Count - 1];
  for (size_t i = Count - 1; i-- > 0;) value = coefficients[i] + x * value;
  return value;
}

}  // namespace

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s) with s = (m - 1) / (m + 1).
double same_log(double x) {
  constexpr uint64_t root_half = std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1), fraction = (uint64_t{1} << 52) - 1;
  const uint64_t above = std::bit_cast<uint64_t>(x) - root_half;
  const double exponent = double(int64_t(above) >> 52), m = std::bit_cast<double>((above & fraction) + root_half);
  const double s = (m - 1) / (m + 1), squared = s * s;
  double series = 0;
  for (int k = 23; k > 1; k -= 2) series = (series + 1.0 / k) * squared;
  return std::fma(exponent, ln_2_high, std::fma(exponent, ln_2_low, 2 * s + 2 * s * series));
}

double same_exp(double x) {
  static constexpr auto series = exponential_series<15>(0, 1, 1);
  if (!(x >= -708)) return 0;
  if (x > 709) return std::numeric_limits<double>::infinity();
  const double n = std::nearbyint(x / ln_2_high);
  return polynomial(series, reduce(x, n, ln_2_high, ln_2_low)) * std::bit_cast<double>(uint64_t(int64_t(n) + 1023) << 52);
}

Turn same_turn(double angle) {
  static constexpr auto cosine_series = exponential_series<9>(0, 2, -1), sine_series = exponential_series<9>(1, 2, -1);
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  if (!(std::fabs(angle) < 0x1p50)) return {nothing, nothing};
  const double quarters = std::nearbyint(angle / half_pi_high), r = reduce(angle, quarters, half_pi_high, half_pi_low);
  const double cosine = polynomial(cosine_series, r * r), sine = polynomial(sine_series, r * r) * r;
  switch (int64_t(quarters) & 3) {
    case 0: return {cosine, sine};
    case 1: return {-sine, cosine};
    case 2: return {-cosine, -sine};
    default: return {sine, -cosine};
  }
}

}  // namespace borrador
