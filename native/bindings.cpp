// The Python module borrador._native: thin wrappers that check arrays, free the interpreter and call the engine.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "best_tokens.h"
#include "bindings.h"
#include "transformer.h"

using namespace nanobind::literals;

namespace borrador {
namespace {

// Evaluates without holding the interpreter.
void evaluate(Transformer& model, const PassRows& rows) {
  nb::gil_scoped_release released;
  model.forward(rows);
}

auto logits_of(Transformer& model, size_t rows) {
  return nb::ndarray<nb::numpy, const float, nb::ndim<2>>(model.logits(), {rows, model.shape().vocabulary}, nb::find(model),
                                                          {int64_t(model.logits_stride()), 1});
}

// Rows of one sequence, whose parents are counted within them; those from the last number on have logits.
using SequenceRows = std::tuple<KvCache*, Ints, Ints, size_t>;
// Of each sequence the short heads whose tokens have logits; none: all tokens have.
using Heads = std::vector<std::vector<const ShortHead*>>;

// The rows of several sequences, one sequence after the other.
struct BatchRows {
  std::vector<KvCache*> caches;
  std::vector<int32_t> cache_of_row, tokens, parents, logit_rows;
  std::vector<HeadUse> heads;

  BatchRows(std::span<const SequenceRows> sequences, const Heads& heads_of) {
    for (const auto& [cache, tokens_here, parents_here, logits_from] : sequences) {
      if (!cache || std::find(caches.begin(), caches.end(), cache) != caches.end()) throw std::invalid_argument("every sequence needs its own cache");
      if (tokens_here.shape(0) != parents_here.shape(0)) throw std::invalid_argument("rows differ in length");
      append(as_span(tokens_here), as_span(parents_here), logits_from);
      caches.push_back(cache);
    }
    if (std::any_of(heads_of.begin(), heads_of.end(), [](const auto& list) { return !list.empty(); })) use(heads_of);
  }

  PassRows pass(const BestWanted& best = {}) const { return {caches, cache_of_row, tokens, parents, logit_rows, best, heads}; }

 private:
  void use(const Heads& heads_of) {
    if (heads_of.size() != caches.size()) throw std::invalid_argument("every sequence needs a list of heads");
    for (size_t at = 0; at < logit_rows.size(); ++at) {
      const auto& list = heads_of[size_t(cache_of_row[size_t(logit_rows[at])])];
      for (const ShortHead* head : list) use_of(head).rows[at] = 1;
      if (list.empty()) use_of(nullptr).rows[at] = 1;
    }
  }
  HeadUse& use_of(const ShortHead* head) {
    const auto found = std::find_if(heads.begin(), heads.end(), [&](const HeadUse& known) { return known.head == head; });
    return found != heads.end() ? *found : heads.emplace_back(HeadUse{head, std::vector<uint8_t>(logit_rows.size(), 0)});
  }
  void append(std::span<const int32_t> tokens_here, std::span<const int32_t> parents_here, size_t logits_from) {
    const size_t begin = tokens.size(), count = tokens_here.size();
    cache_of_row.insert(cache_of_row.end(), count, int32_t(caches.size()));
    tokens.insert(tokens.end(), tokens_here.begin(), tokens_here.end());
    for (const int32_t parent : parents_here) {
      if (parent >= 0 && size_t(parent) >= count) throw std::invalid_argument("a parent must come before its row, in the same sequence");
      parents.push_back(parent < 0 ? parent : int32_t(begin) + parent);
    }
    for (size_t row = logits_from; row < count; ++row) logit_rows.push_back(int32_t(begin + row));
  }
};

auto forward(Transformer& model, const std::vector<SequenceRows>& sequences, const Heads& heads) {
  const BatchRows rows(sequences, heads);
  evaluate(model, rows.pass());
  return logits_of(model, rows.logit_rows.size());
}

auto best(Transformer& model, const std::vector<SequenceRows>& sequences, size_t count, size_t within, bool normaliser,
          const Heads& heads) {
  if (count == 0) throw std::invalid_argument("the best of no token");
  const BatchRows rows(sequences, heads);
  evaluate(model, rows.pass({count, within, normaliser}));
  return owned_best(model.best(), rows.logit_rows.size(), count);
}

ModelShape make_shape(size_t layers, size_t ropes) {
  ModelShape shape;
  shape.layers.resize(layers);
  shape.ropes.resize(ropes);
  return shape;
}

Transformer* make_transformer(const ModelShape& shape, size_t arena_bytes, size_t threads, const std::string& isa) {
  return new Transformer(shape, arena_bytes, threads, parse_isa(isa));
}

void bind_shape(nb::module_& m) {
  nb::class_<ModelShape>(m, "ModelShape")
      .def(nb::new_(&make_shape), nb::kw_only(), "layers"_a, "ropes"_a)
      .def_rw("width", &ModelShape::width)
      .def_rw("heads", &ModelShape::heads)
      .def_rw("kv_heads", &ModelShape::kv_heads)
      .def_rw("head_dim", &ModelShape::head_dim)
      .def_rw("ffn_width", &ModelShape::ffn_width)
      .def_rw("vocabulary", &ModelShape::vocabulary)
      .def_rw("norm_epsilon", &ModelShape::norm_epsilon)
      .def_rw("embedding_scale", &ModelShape::embedding_scale)
      .def_rw("attention_scale", &ModelShape::attention_scale)
      .def_rw("attention_soft_cap", &ModelShape::attention_soft_cap)
      .def_rw("logit_soft_cap", &ModelShape::logit_soft_cap)
      .def_rw("experts", &ModelShape::experts)
      .def_rw("experts_used", &ModelShape::experts_used)
      .def_rw("expert_weights_normalised", &ModelShape::expert_weights_normalised)
      .def_rw("expert_weights_scale", &ModelShape::expert_weights_scale)
      .def_rw("rope_dim", &ModelShape::rope_dim)
      .def_rw("rope_interleaved", &ModelShape::rope_interleaved)
      .def_rw("rope_magnitude", &ModelShape::rope_magnitude)
      .def_rw("rope_short_context", &ModelShape::rope_short_context)
      .def_prop_ro("cache_chunk_bytes", [](const ModelShape& shape) { return shape.kv_shape().chunk_bytes(); })
      .def("use_gelu", [](ModelShape& shape) { shape.activation = Activation::gelu; })
      .def("set_rope", [](ModelShape& shape, size_t rope, double base, double scale) { shape.ropes.at(rope) = {base, scale}; }, "rope"_a, "base"_a,
           "scale"_a)
      .def("set_layer", [](ModelShape& shape, size_t layer, size_t window, int32_t rope) { shape.layers.at(layer) = {window, rope}; }, "layer"_a,
           "window"_a, "rope"_a);
}

void bind_engine(nb::module_& m) {
  nb::class_<ShortHead>(m, "ShortHead")
      .def("add", [](ShortHead& head, const Ints& tokens) { head.add(as_span(tokens)); }, "tokens"_a)
      .def("__len__", [](const ShortHead& head) { return head.tokens().size(); })
      .def_prop_ro("capacity", &ShortHead::capacity)
      .def_prop_ro("bytes", [](const ShortHead& head) { return head.matrix().bytes(); });

  nb::class_<Transformer>(m, "Transformer")
      .def(nb::new_(&make_transformer), "shape"_a, nb::kw_only(), "arena_bytes"_a, "threads"_a, "isa"_a)
      .def("load_matrix",
           [](Transformer& model, int layer, const std::string& name, uint32_t format, size_t rows, size_t columns, const Bytes& data, uint32_t kept) {
             nb::gil_scoped_release released;
             model.load_matrix(layer, name, Format(format), Format(kept), rows, columns, {data.data(), data.shape(0)});
           },
           "layer"_a, "name"_a, "format"_a, "rows"_a, "columns"_a, "data"_a, nb::kw_only(), "kept"_a)
      .def("load_vector",
           [](Transformer& model, int layer, const std::string& name, const Floats& values) {
             model.load_vector(layer, name, {values.data(), values.shape(0)});
           },
           "layer"_a, "name"_a, "values"_a)
      .def("finish_loading", &Transformer::finish_loading)
      .def_prop_ro("weights_bytes", &Transformer::weights_bytes)
      .def_prop_ro("head_bytes", &Transformer::head_bytes)
      .def_prop_ro("row_macs", &Transformer::row_macs)
      .def("integer_peak", &Transformer::integer_peak, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("threads", &Transformer::threads)
      .def_prop_ro("isa", [](const Transformer& model) { return model.kernels().name; })
      .def_prop_ro("cache_pool", &Transformer::cache_pool)
      .def("make_cache", &Transformer::make_cache, "capacity"_a)
      .def("forward", &forward, "sequences"_a, nb::kw_only(), "heads"_a = nb::list())
      .def("best", &best, "sequences"_a, nb::kw_only(), "count"_a, "within"_a, "normaliser"_a, "heads"_a = nb::list())
      .def("make_short_head", &Transformer::make_short_head, "capacity"_a, nb::keep_alive<0, 1>())
      .def("hidden", [](Transformer& model, size_t rows) {
        return nb::ndarray<nb::numpy, const float, nb::ndim<2>>(model.hidden(), {rows, model.shape().width}, nb::find(model));
      }, "rows"_a);
}

}  // namespace
}  // namespace borrador

NB_MODULE(_native, m) {
  m.doc() = "The native engine of borrador.";
  nanobind::set_leak_warnings(false);
  borrador::bind_shape(m);
  borrador::bind_caches(m);
  borrador::bind_engine(m);
  borrador::bind_kernels(m);
  borrador::bind_sampler(m);
  borrador::bind_suffixes(m);
  borrador::bind_successors(m);
}
