// Compares elementary.h with the C library: fails where they differ by more than three units in the last place, or turns
// by more than 2e-15.
#include "elementary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

int main() {
  using namespace borrador;
  constexpr double unit = 0x1p-52;
  double exp_error = 0, log_error = 0, turn_error = 0;
  const auto relative = [](double found, double expected) { return std::fabs(found - expected) / std::fabs(expected) / unit; };
  for (int i = 1; i <= 200000; ++i) {
    const double x = 0.007031 * i - 703;
    exp_error = std::max(exp_error, relative(same_exp(x), std::exp(x)));
    const double y = std::exp(x / 20);
    log_error = std::max(log_error, relative(same_log(y), std::log(y)));
    const double angle = (i % 2 ? 1 : -1) * std::exp(i * 1.5e-4 - 10);
    const Turn turn = same_turn(angle);
    turn_error = std::max({turn_error, std::fabs(turn.cosine - std::cos(angle)), std::fabs(turn.sine - std::sin(angle))});
  }
  std::printf("units in the last place: exp %.2f, log %.2f; turn %.2g\n", exp_error, log_error, turn_error);
  const bool edges = same_exp(0) == 1 && same_log(1) == 0 && same_exp(-1e4) == 0 && std::isinf(same_exp(1e4)) && same_turn(0).cosine == 1 &&
                     same_turn(0).sine == 0 && std::isnan(same_turn(1e300).sine);
  return exp_error <= 3 && log_error <= 3 && turn_error <= 2e-15 && edges ? 0 : 1;
}
