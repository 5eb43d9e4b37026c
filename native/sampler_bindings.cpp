// Shaping, choosing and ranking tokens.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>

#include "arrays.h"
#include "best_tokens.h"
#include "bindings.h"
#include "noise.h"
#include "sampler.h"

using namespace nanobind::literals;

namespace borrador {
namespace {

// What a pass that was asked for the best tokens would have found in these logits.
auto best_of_logits(const FloatRows& logits, size_t count, bool normaliser) {
  const size_t rows = logits.shape(0), tokens = logits.shape(1);
  if (count == 0 || count > BestTokens::most || tokens == 0) throw std::invalid_argument("the best of no token, or of more than there are");
  const KernelTable& kernels = kernels_for(best_isa());
  BestTokens best(1);
  best.begin_pass({count, tokens, normaliser}, rows);
  const size_t blocks = BestTokens::blocks_of(tokens);
  best.begin(rows, blocks);
  for (size_t row = 0; row < rows; ++row)
    for (size_t block = 0; block < blocks; ++block)
      best.take(kernels, 0, row, block, BestTokens::tokens_of(block, tokens), row_of(logits, row) + block * BestTokens::block_tokens);
  best.finish(kernels, 0);
  return owned_best(best, rows, count);
}

// The arguments of one row, checked.
RowConditions conditions_of(const Floats& logits, const Ints& window, const Ints& barred, const std::optional<Words>& mask) {
  if (mask && mask->shape(0) * 32 < logits.shape(0)) throw std::out_of_range("a mask must have a bit for every logit");
  return {as_span(window), as_span(barred), mask ? mask->data() : nullptr};
}

Shape make_shape_of_rows(double temperature, size_t top_k, double typical_p, double top_p, double min_p, float repetition, float presence,
                         float frequency, const Ints& biased, const Floats& biases, const Words& allowed, const std::string& isa) {
  if (biased.shape(0) != biases.shape(0)) throw std::invalid_argument("every biased token needs one bias");
  Edits edits{{biased.data(), biased.data() + biased.shape(0)}, {biases.data(), biases.data() + biases.shape(0)},
              {allowed.data(), allowed.data() + allowed.shape(0)}, repetition, presence, frequency};
  return {temperature, top_k, typical_p, top_p, min_p, std::move(edits), &kernels_for(parse_isa(isa))};
}

void bind_rows(nb::module_& m) {
  nb::class_<Shape>(m, "Shape")
      .def(nb::new_([](double temperature, size_t top_k, double typical_p, double top_p, double min_p, float repetition, float presence,
                       float frequency, const Ints& biased, const Floats& biases, const Words& allowed, const std::string& isa) {
             return new Shape(make_shape_of_rows(temperature, top_k, typical_p, top_p, min_p, repetition, presence, frequency, biased, biases,
                                                 allowed, isa));
           }),
           nb::kw_only(), "temperature"_a, "top_k"_a, "typical_p"_a, "top_p"_a, "min_p"_a, "repetition"_a, "presence"_a, "frequency"_a,
           "biased"_a, "biases"_a, "allowed"_a, "isa"_a = "");
  m.def("shape",
        [](const Floats& logits, const Shape& how, const Ints& window, const Ints& barred, const std::optional<Words>& mask) {
          Distribution d = shape(logits.data(), logits.shape(0), how, conditions_of(logits, window, barred, mask));
          return nb::make_tuple(owned(std::move(d.ids)), owned(std::move(d.probabilities)));
        },
        "logits"_a, "shape"_a, "window"_a, "barred"_a, "mask"_a.none());
  m.def("pick_likeliest",
        [](const Floats& logits, const Shape& how, const Ints& window, const Ints& barred, const std::optional<Words>& mask) {
          return pick_likeliest(logits.data(), logits.shape(0), how, conditions_of(logits, window, barred, mask));
        },
        "logits"_a, "shape"_a, "window"_a, "barred"_a, "mask"_a.none());
  m.def("pick_seeded",
        [](const Floats& logits, const Shape& how, const Ints& window, const Ints& barred, const std::optional<Words>& mask, uint64_t seed,
           uint64_t position) {
          return pick_seeded(logits.data(), logits.shape(0), how, conditions_of(logits, window, barred, mask), seed, position);
        },
        "logits"_a, "shape"_a, "window"_a, "barred"_a, "mask"_a.none(), "seed"_a, "position"_a);
}

}  // namespace

void bind_sampler(nb::module_& m) {
  bind_rows(m);
  m.def("best_of_logits", &best_of_logits, "logits"_a, nb::kw_only(), "count"_a, "normaliser"_a);
  m.def("top_k",
        [](const Floats& logits, size_t k) {
          Ranked ranked = top_k(logits.data(), logits.shape(0), k);
          return nb::make_tuple(owned(std::move(ranked.ids)), owned(std::move(ranked.logits)));
        },
        "logits"_a, "k"_a);
  m.def("log_total", [](const Floats& logits) { return log_total(logits.data(), logits.shape(0)); }, "logits"_a);
  m.def("uniform", [](uint64_t seed, uint64_t position, uint32_t token) { return uniform(noise_key(seed, position), token); }, "seed"_a,
        "position"_a, "token"_a);
  m.def("pick", [](const Floats& weights, double u) { return pick(weights.data(), weights.shape(0), u); }, "weights"_a, "u"_a);
}

}  // namespace borrador
