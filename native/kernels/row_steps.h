// What happens to single rows: quantising, norms, activations, conversions. Part of body.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
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

// Writes one row of a tile of `tile` rows into its places in a block of activations.
class RowOfBlock {
 public:
  RowOfBlock(uint8_t* block, size_t row, size_t tile) : block_(block), row_(row), tile_(tile) {}

  float& scale() { return *place<float>(offsetof(One, scale), 0, 1); }
  float& sum_scale() { return *place<float>(offsetof(One, sum_scale), 0, 1); }
  float& float_scale(size_t g) { return *place<float>(offsetof(One, float_scale), g, 1); }
  float& scaled_sum(size_t g) { return *place<float>(offsetof(One, scaled_sum), g, 1); }
  int32_t& negative_sum(size_t g) { return *place<int32_t>(offsetof(One, negative_sum), g, 1); }
  int32_t& half_offset(size_t g, size_t half) { return *place<int32_t>(offsetof(One, half_offset), 2 * g + half, 1); }
  int16_t& group_scale(size_t g) { return place<int16_t>(offsetof(One, group_scale), g / 2, 2)[g % 2]; }
  int16_t& group_sum(size_t g) { return place<int16_t>(offsetof(One, group_sum), g / 2, 2)[g % 2]; }
  int16_t& half_sum(size_t g, size_t half) { return place<int16_t>(offsetof(One, half_sum), g / 2 * 2 + half, 2)[g % 2]; }
  int8_t* values(size_t g) { return place<int8_t>(offsetof(One, value), g, group); }

 private:
  using One = ActivationBlock<1>;

  // Element `index` of a field whose elements hold `length` items for each row.
  template <class T>
  T* place(size_t offset, size_t index, size_t length) {
    return reinterpret_cast<T*>(block_ + offset * tile_) + (index * tile_ + row_) * length;
  }

  uint8_t* block_;
  size_t row_, tile_;
};

// Sums of a group's values: of the first half, of the second.
struct GroupSums {
  int32_t half[2];
  int32_t all() const { return half[0] + half[1]; }
};

template <class S>
GroupSums quantise_group(const float* values, size_t g, float scale, RowOfBlock& to) {
  const auto inverse = S::set(scale > 0 ? 1.0f / scale : 0.0f);
  const auto low = to_int8_range<S>(S::mul(S::load(values), inverse)), high = to_int8_range<S>(S::mul(S::load(values + lanes), inverse));
  S::store_i8(to.values(g), low);
  S::store_i8(to.values(g) + lanes, high);
  const GroupSums sums{{S::sum(low), S::sum(high)}};
  to.float_scale(g) = scale;
  to.scaled_sum(g) = scale * float(sums.all());
  to.negative_sum(g) = -sums.all();
  for (size_t half = 0; half < 2; ++half) to.half_offset(g, half) = 4 - 32 * sums.half[half];
  return sums;
}

// Writes the sums times group scales that minimums are multiplied with.
inline void store_sums(const GroupSums (&sums)[block_groups], float scale, RowOfBlock& to) {
  int32_t most = 0;
  for (size_t g = 0; g < block_groups; ++g)
    for (const int32_t sum : {sums[g].half[0], sums[g].half[1], sums[g].all()}) most = std::max(most, std::abs(sum) * to.group_scale(g));
  int shift = 0;
  while ((most + (1 << shift) / 2) >> shift > INT16_MAX) ++shift;
  // Ties go up in even groups and down in odd ones.
  const auto cut = [&](int32_t sum, size_t g) {
    const int32_t half = shift == 0 ? 0 : (1 << shift) / 2 - int32_t(g % 2);
    return int16_t((sum * to.group_scale(g) + half) >> shift);
  };
  for (size_t g = 0; g < block_groups; ++g) {
    to.group_sum(g) = cut(sums[g].all(), g);
    for (size_t half = 0; half < 2; ++half) to.half_sum(g, half) = cut(sums[g].half[half], g);
  }
  to.sum_scale() = scale * float(1 << shift);
}

template <class S>
void quantise(const float* x, size_t columns, size_t begin, size_t end, uint8_t* activations, size_t row, size_t tile) {
  constexpr size_t block = block_groups * group;
  for (size_t b = begin; b < end; ++b) {
    float padded[block];
    const float* values = x + b * block;
    if ((b + 1) * block > columns) {
      std::memset(padded, 0, sizeof padded);
      std::memcpy(padded, values, (columns - b * block) * sizeof(float));
      values = padded;
    }
    float largest[block_groups], most = 0, nothing = 0;
    for (size_t g = 0; g < block_groups; ++g) {
      largest[g] = S::largest(S::max(S::abs(S::load(values + g * group)), S::abs(S::load(values + g * group + lanes))));
      most = largest[g] > most ? largest[g] : most;
      nothing += largest[g] * 0.0f;  // carries not-a-numbers of damaged models into the scale
    }
    RowOfBlock to(activations + b * activation_bytes_per_row_block * tile, row, tile);
    const float scale = most * (1.0f / (127.0f * 127.0f)) + nothing, inverse = most > 0 ? 127.0f / most : 0.0f;
    to.scale() = scale;
    GroupSums sums[block_groups];
    for (size_t g = 0; g < block_groups; ++g) {
      const float least = std::ceil(largest[g] * inverse), group_scale = least >= 1 ? (least <= 127 ? least : 127.0f) : 1.0f;
      to.group_scale(g) = int16_t(group_scale);
      sums[g] = quantise_group<S>(values + g * group, g, scale * group_scale, to);
    }
    store_sums(sums, scale, to);
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
