// What ranking a row's logits takes: their largest, and the sum of their exponentials. Part of body.h.
#pragma once
#include <cstring>
#include <limits>

#include "kernels.h"
#include "row_steps.h"

namespace borrador {
namespace {

// Loads up to sixteen values, minus infinity beyond.
template <class S>
typename S::F32 load_or_least(const float* x, size_t count) {
  if (count >= lanes) return S::load(x);
  float values[lanes];
  for (float& value : values) value = -std::numeric_limits<float>::infinity();
  std::memcpy(values, x, count * sizeof(float));
  return S::load(values);
}

template <class S>
float largest(const float* x, size_t count) {
  auto result = S::set(-std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < count; i += lanes) result = S::max(load_or_least<S>(x + i, count - i), result);  // the second where the first is no number
  return S::largest(result);
}

template <class S>
float exp_sum(const float* x, const float* factor, size_t count, float maximum) {
  const auto top = S::set(maximum);
  auto sum = S::zero_f32();
  for (size_t i = 0; i < count; i += lanes) {
    const auto power = exponential<S>(S::sub(load_or_least<S>(x + i, count - i), top));
    sum = factor ? S::fma(power, load_some<S>(factor + i, count - i), sum) : S::add(sum, power);
  }
  return sum_of<S>(sum);
}

}  // namespace
}  // namespace borrador
