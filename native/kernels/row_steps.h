// What happens to single rows: quantising, norms, activations, conversions. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"

namespace borrador {
namespace {

// Sums of sixteen lanes in a fixed order: halves are folded onto each other.
inline float sum_lanes(const float* values) {
  float fold[8];
  for (int i = 0; i < 8; ++i) fold[i] = values[i] + values[i + 8];
  for (int i = 0; i < 4; ++i) fold[i] += fold[i + 4];
  return (fold[0] + fold[2]) + (fold[1] + fold[3]);
}

template <class S>
float sum_of(typename S::F32 vector) {
  float values[lanes];
  S::store(values, vector);
  return sum_lanes(values);
}

// Rounds to integers that a byte holds, whatever comes in: a damaged model may compute infinities and not-a-numbers.
template <class S>
typename S::I32 to_int8_range(typename S::F32 x) {
  return S::round(S::min(S::max(x, S::set(-127.0f)), S::set(127.0f)));
}

template <class S>
void quantise(const float* x, size_t columns, size_t begin, size_t end, uint8_t* activations, size_t row, size_t tile) {
  const size_t group_bytes = activation_bytes_per_row_group * tile;
  for (size_t g = begin; g < end; ++g) {
    float padded[group];
    const float* values = x + g * group;
    if ((g + 1) * group > columns) {
      std::memset(padded, 0, sizeof padded);
      if (g * group < columns) std::memcpy(padded, values, (columns - g * group) * sizeof(float));
      values = padded;
    }
    const auto low = S::load(values), high = S::load(values + lanes);
    const float largest = S::largest(S::max(S::abs(low), S::abs(high)));
    const float scale = largest * (1.0f / 127.0f), inverse = largest > 0 ? 127.0f / largest : 0.0f;
    uint8_t* base = activations + g * group_bytes;
    auto* value = reinterpret_cast<int8_t*>(base + row * group);
    const auto low_values = to_int8_range<S>(S::mul(low, S::set(inverse))), high_values = to_int8_range<S>(S::mul(high, S::set(inverse)));
    S::store_i8(value, low_values);
    S::store_i8(value + lanes, high_values);
    const int32_t first = S::sum(low_values), second = S::sum(high_values);
    auto* scales = reinterpret_cast<float*>(base + tile * group);
    auto* sums = reinterpret_cast<int32_t*>(scales + 2 * tile);
    scales[row] = scale;
    scales[tile + row] = scale * float(first + second);
    sums[row] = -first;
    sums[tile + row] = -second;
    sums[2 * tile + row] = -(first + second);
    auto* half_sums = reinterpret_cast<float*>(sums + 3 * tile);
    half_sums[row] = scale * float(first);
    half_sums[tile + row] = scale * float(second);
  }
}

// Loads up to sixteen values, zero beyond.
template <class S>
typename S::F32 load_some(const float* x, size_t count) {
  if (count >= lanes) return S::load(x);
  float values[lanes] = {};
  std::memcpy(values, x, count * sizeof(float));
  return S::load(values);
}

template <class S>
void store_some(float* out, typename S::F32 vector, size_t count) {
  if (count >= lanes) return S::store(out, vector);
  float values[lanes];
  S::store(values, vector);
  std::memcpy(out, values, count * sizeof(float));
}

template <class S>
void rms_norm(const float* x, const float* weight, size_t count, float epsilon, float* out) {
  auto squares = S::zero_f32();
  for (size_t i = 0; i < count; i += lanes) {
    const auto v = load_some<S>(x + i, count - i);
    squares = S::fma(v, v, squares);
  }
  const float scale = 1.0f / std::sqrt(sum_of<S>(squares) / float(count) + epsilon);
  for (size_t i = 0; i < count; i += lanes) {
    const auto scaled = S::mul(load_some<S>(x + i, count - i), S::set(scale));
    store_some<S>(out + i, S::mul(scaled, load_some<S>(weight + i, count - i)), count - i);
  }
}

template <class S>
void add(float* x, const float* y, size_t count) {
  for (size_t i = 0; i < count; i += lanes)
    store_some<S>(x + i, S::add(load_some<S>(x + i, count - i), load_some<S>(y + i, count - i)), count - i);
}

template <class S>
void add_scaled(float* x, const float* y, float factor, size_t count) {
  for (size_t i = 0; i < count; i += lanes)
    store_some<S>(x + i, S::fma(load_some<S>(y + i, count - i), S::set(factor), load_some<S>(x + i, count - i)), count - i);
}

// e^x to about one unit in the last place for x <= 88; below -87.3 the result is the smallest normal number's scale.
// Range reduction to |r| <= ln(2)/2 and the series of e^r, its coefficients 1/k!.
template <class S>
typename S::F32 exponential(typename S::F32 x) {
  x = S::min(S::max(x, S::set(-87.0f)), S::set(88.0f));
  const auto n = S::round(S::mul(x, S::set(1.44269504088896341f)));
  const auto whole = S::to_f32(n);
  auto r = S::fma(whole, S::set(-0.693359375f), x);
  r = S::fma(whole, S::set(2.12194440e-4f), r);
  auto p = S::set(1.0f / 5040);
  p = S::fma(p, r, S::set(1.0f / 720));
  p = S::fma(p, r, S::set(1.0f / 120));
  p = S::fma(p, r, S::set(1.0f / 24));
  p = S::fma(p, r, S::set(1.0f / 6));
  p = S::fma(p, r, S::set(0.5f));
  p = S::fma(p, r, S::set(1.0f));
  p = S::fma(p, r, S::set(1.0f));
  return S::mul(p, S::power_of_two(n));
}

template <class S>
void silu_mul(const float* gate, const float* up, size_t count, float* out) {
  const auto one = S::set(1.0f);
  for (size_t i = 0; i < count; i += lanes) {
    const auto g = load_some<S>(gate + i, count - i);
    const auto silu = S::div(g, S::add(one, exponential<S>(S::sub(S::zero_f32(), g))));
    store_some<S>(out + i, S::mul(silu, load_some<S>(up + i, count - i)), count - i);
  }
}

// x * (1 + tanh(u)) / 2 = x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3) (Hendrycks and Gimpel, arXiv 1606.08415).
template <class S>
void gelu_mul(const float* gate, const float* up, size_t count, float* out) {
  const auto one = S::set(1.0f), cubic = S::set(0.044715f), factor = S::set(-1.5957691216057308f);
  for (size_t i = 0; i < count; i += lanes) {
    const auto g = load_some<S>(gate + i, count - i);
    const auto u = S::mul(g, S::fma(S::mul(g, g), cubic, one));
    const auto gelu = S::div(g, S::add(one, exponential<S>(S::mul(u, factor))));
    store_some<S>(out + i, S::mul(gelu, load_some<S>(up + i, count - i)), count - i);
  }
}

// tanh(y) = 1 - 2 / (exp(2y) + 1).
template <class S>
void soft_cap(float* x, size_t count, float cap) {
  const auto one = S::set(1.0f), two = S::set(2.0f), limit = S::set(cap), doubled = S::set(2.0f / cap);
  for (size_t i = 0; i < count; i += lanes) {
    const auto power = exponential<S>(S::mul(load_some<S>(x + i, count - i), doubled));
    const auto tanh = S::sub(one, S::div(two, S::add(power, one)));
    store_some<S>(x + i, S::mul(limit, tanh), count - i);
  }
}

}  // namespace
}  // namespace borrador
