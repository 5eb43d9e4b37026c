// Arrays that go between Python and the engine.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "best_tokens.h"

namespace borrador {

namespace nb = nanobind;

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const int32_t> as_span(const Ints& ints) { return {ints.data(), ints.shape(0)}; }

template <class T>
nb::capsule owner_of(std::vector<T>* values) {
  return nb::capsule(values, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
}

// An array that owns its values.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  return {kept->data(), {kept->size()}, owner_of(kept)};
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> owned_rows(std::vector<T>&& values, size_t rows, size_t columns) {
  auto* kept = new std::vector<T>(std::move(values));
  return {kept->data(), {rows, columns}, owner_of(kept)};
}

// Token ids and logits, rows x count each, and the normaliser of every row, copied.
inline nb::tuple owned_best(const BestTokens& best, size_t rows, size_t count) {
  return nb::make_tuple(owned_rows(std::vector<int32_t>(best.ids()), rows, count), owned_rows(std::vector<float>(best.logits()), rows, count),
                        owned(std::vector<float>(best.normalisers())));
}

// One row of logits. Throws std::invalid_argument where the vocabulary is not contiguous in memory.
inline const float* row_of(const FloatRows& logits, size_t row) {
  if (logits.shape(1) > 1 && logits.stride(1) != 1) throw std::invalid_argument("logits must be contiguous along the vocabulary");
  return logits.data() + int64_t(row) * logits.stride(0);
}

}  // namespace borrador
