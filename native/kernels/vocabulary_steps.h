// What the sampler does with whole rows of logits. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "best_steps.h"
#include "kernels.h"
#include "row_steps.h"

namespace borrador {
namespace {

template <class S>
void block_maxima(const float* row, size_t size, float* maxima) {
  const float never = -std::numeric_limits<float>::infinity();
  size_t begin = 0;
  for (; begin + vocabulary_block <= size; begin += vocabulary_block) {
    // Not-a-numbers lose: max takes its second operand where the first is one.
    auto largest = S::set(never);
    for (size_t i = 0; i < vocabulary_block; i += lanes) largest = S::max(S::load(row + begin + i), largest);
    *maxima++ = S::largest(largest);
  }
  if (begin == size) return;
  float last = never;
  for (; begin < size; ++begin) last = row[begin] > last ? row[begin] : last;
  *maxima = last;
}

// e^x for x <= 0 less what `exponential` gives at its lower end, which is nothing above -70: exactly 0 below -87.
template <class S>
typename S::F32 weight_of(typename S::F32 x) {
  return S::sub(exponential<S>(x), exponential<S>(S::set(-87.0f)));
}

// Sums run along sixteen lanes for a run of 1024 logits, and from run to run in double.
template <class S>
Mass weigh(const float* row, size_t size, float largest, float scale, float* out) {
  constexpr size_t run = 1024;
  const auto top = S::set(largest), factor = S::set(scale), least = S::set(-87.0f);
  Mass mass{0, 0};
  for (size_t begin = 0; begin < size; begin += run) {
    const size_t end = std::min(begin + run, size);
    auto total = S::zero_f32(), moment = S::zero_f32();
    for (size_t i = begin; i < end; i += lanes) {
      const auto x = S::max(S::mul(S::sub(load_or_least<S>(row + i, end - i), top), factor), least);
      const auto weight = weight_of<S>(x);
      total = S::add(total, weight);
      moment = S::fma(weight, x, moment);
      if (out) store_some<S>(out + i, weight, end - i);
    }
    mass.total += double(sum_of<S>(total));
    mass.moment += double(sum_of<S>(moment));
  }
  return mass;
}

template <class S>
void scale_by(float* x, size_t count, float factor) {
  for (size_t i = 0; i < count; i += lanes) store_some<S>(x + i, S::mul(load_some<S>(x + i, count - i), S::set(factor)), count - i);
}

// noise_bits of race.h for sixteen tokens.
template <class S>
typename S::I32 noise_vector(typename S::I32 x, const NoiseKey& key) {
  const int32_t first = int32_t(key.first), second = int32_t(key.second);
  const int32_t multipliers[] = {int32_t(noise_multipliers[0]), int32_t(noise_multipliers[1]), int32_t(noise_multipliers[2])};
  x = S::add_i32(x, S::broadcast_i32(&first));
  x = S::xor_i32(x, S::template shift_right_i32<17>(x));
  x = S::mul_i32(x, S::broadcast_i32(multipliers));
  x = S::xor_i32(x, S::broadcast_i32(&second));
  x = S::xor_i32(x, S::template shift_right_i32<11>(x));
  x = S::mul_i32(x, S::broadcast_i32(multipliers + 1));
  x = S::xor_i32(x, S::template shift_right_i32<15>(x));
  x = S::mul_i32(x, S::broadcast_i32(multipliers + 2));
  return S::xor_i32(x, S::template shift_right_i32<14>(x));
}

// Token i can win only if -log(u) < e^(x - best), and 1 - u <= -log(u): one hash and the next power of two above the
// right side rule out nearly every token without a logarithm.
template <class S>
size_t next_contenders(const float* row, size_t begin, size_t size, const NoiseKey& key, const RaceBounds& bounds, uint32_t* found) {
  static constexpr uint8_t counting[lanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int32_t all_ones = -1;
  const auto top = S::set(bounds.largest), factor = S::set(bounds.scale), best = S::set(bounds.best_log2);
  const auto half = S::set(0.501f), least = S::set(-126.0f), most = S::set(126.0f), unit = S::set(0x1p-24f);
  const auto inverse = S::broadcast_i32(&all_ones);
  const auto tokens = S::load_u8_i32(counting);
  for (size_t i = begin; i < size; i += lanes) {
    const int32_t first = int32_t(i);
    const auto noise = noise_vector<S>(S::add_i32(tokens, S::broadcast_i32(&first)), key);
    const auto above = S::mul(S::to_f32(S::template shift_right_i32<8>(S::xor_i32(noise, inverse))), unit);
    const auto ahead = S::sub(S::mul(S::sub(load_or_least<S>(row + i, size - i), top), factor), best);
    const auto bound = S::power_of_two(S::round(S::add(S::min(S::max(ahead, least), most), half)));
    *found = S::at_most(above, bound);
    if (*found) return i;
  }
  return size;
}

}  // namespace
}  // namespace borrador
