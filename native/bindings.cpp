// The Python module borrador._native: thin wrappers that check arrays, free the interpreter and call the engine.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "best_tokens.h"
#include "bindings.h"
#include "cpu.h"
#include "memory.h"
#include "noise.h"
#include "sampler.h"
#include "suffix_automaton.h"
#include "transformer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace borrador {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const int32_t> as_span(const Ints& a) { return {a.data(), a.shape(0)}; }

Isa parse_isa(const std::string& name) {
  if (name.empty()) return best_isa();
  for (const Isa isa : all_isas)
    if (is_available(isa) && name == kernels_for(isa).name) return isa;
  throw std::invalid_argument("instruction set " + name + " is not available here");
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa isa : all_isas)
    if (is_available(isa)) names.emplace_back(kernels_for(isa).name);
  return names;
}

template <class T>
nb::capsule owner_of(std::vector<T>* values) {
  return nb::capsule(values, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
}

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

auto owned_best(const BestTokens& best, size_t rows, size_t count) {
  return nb::make_tuple(owned_rows(std::vector<int32_t>(best.ids()), rows, count), owned_rows(std::vector<float>(best.logits()), rows, count),
                        owned(std::vector<float>(best.normalisers())));
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

// Rows of logits: the last dimension must be contiguous.
const float* row_of(const FloatRows& logits, size_t row) {
  if (logits.shape(1) > 1 && logits.stride(1) != 1) throw std::invalid_argument("logits must be contiguous along the vocabulary");
  return logits.data() + int64_t(row) * logits.stride(0);
}

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

auto argmax_rows(const FloatRows& logits) {
  std::vector<int32_t> best(logits.shape(0));
  for (size_t i = 0; i < best.size(); ++i) best[i] = argmax(row_of(logits, i), logits.shape(1));
  return owned(std::move(best));
}

// A matrix straight from its GGUF bytes times rows of activations, the way a pass does it. The output is filled with
// not-a-number first, so that a value the kernel forgets to write shows.
auto multiply(const std::string& isa, uint32_t format, size_t rows, size_t columns, const Bytes& data, const FloatRows& x, size_t threads) {
  const KernelTable& kernels = kernels_for(parse_isa(isa));
  Matrix matrix{Format(format), rows, columns};
  if (!is_supported(format) || gguf_bytes(matrix.format, rows, columns) != data.shape(0) || x.shape(1) != columns)
    throw std::invalid_argument("matrix and activations do not fit together");
  const auto pool = shared_pool(threads);
  PageBuffer packed(matrix.bytes(), PageBuffer::Pages::normal);
  matrix.data = packed.data();
  std::lock_guard guard(pool->pass);
  repack(data.data(), matrix, pool->pool);
  const size_t count = x.shape(0), blocks = activation_blocks(columns);
  std::vector<float> values(count * columns), out(count * matrix.padded_rows(), std::numeric_limits<float>::quiet_NaN());
  std::vector<uint8_t> activations(count * blocks * activation_bytes_per_row_block);
  for (size_t row = 0; row < count; ++row) std::copy_n(row_of(x, row), columns, values.data() + row * columns);
  if (matrix.quantised())
    for (size_t tile = 0; tile * kernels.tile_rows < count; ++tile)
      quantise_tile(kernels, values.data(), columns, tile, count, 0, blocks, activations.data());
  const auto* input = matrix.quantised() ? activations.data() : reinterpret_cast<const uint8_t*>(values.data());
  pool->pool.for_range(matrix.strips(), 1, [&](size_t begin, size_t end, size_t) {
    kernels.matmul(matrix.format, matrix.data, matrix.blocks_per_strip(), begin, end, input, count, out.data(), matrix.padded_rows());
  });
  std::vector<float> dense(count * rows);
  for (size_t row = 0; row < count; ++row) std::copy_n(out.data() + row * matrix.padded_rows(), rows, dense.data() + row * rows);
  return owned_rows(std::move(dense), count, rows);
}

// The rows of a matrix as the embedding look-up sees them.
auto dequantise(uint32_t format, size_t rows, size_t columns, const Bytes& data) {
  Matrix matrix{Format(format), rows, columns};
  if (!is_supported(format) || gguf_bytes(matrix.format, rows, columns) != data.shape(0)) throw std::invalid_argument("wrong size of data");
  const auto pool = shared_pool(1);
  PageBuffer packed(matrix.bytes(), PageBuffer::Pages::normal);
  matrix.data = packed.data();
  std::lock_guard guard(pool->pass);
  repack(data.data(), matrix, pool->pool);
  std::vector<float> values(rows * columns);
  for (size_t row = 0; row < rows; ++row) matrix.row(row, values.data() + row * columns);
  return owned_rows(std::move(values), rows, columns);
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
           [](Transformer& model, int layer, const std::string& name, uint32_t format, size_t rows, size_t columns, const Bytes& data) {
             nb::gil_scoped_release released;
             model.load_matrix(layer, name, Format(format), rows, columns, {data.data(), data.shape(0)});
           },
           "layer"_a, "name"_a, "format"_a, "rows"_a, "columns"_a, "data"_a)
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

  m.def("packed_bytes", [](uint32_t format, size_t rows, size_t columns) { return Matrix{Format(format), rows, columns}.bytes(); }, "format"_a, "rows"_a,
        "columns"_a);
  m.def("multiply", &multiply, "isa"_a, "format"_a, "rows"_a, "columns"_a, "data"_a, "x"_a, "threads"_a = 1);
  m.def("dequantise", &dequantise, "format"_a, "rows"_a, "columns"_a, "data"_a);
  m.def("available_isas", &available_isas);
  m.def("usable_cores", &usable_cores);
  m.def("read_bandwidth", &read_bandwidth, "threads"_a, "bytes"_a, "repeats"_a = 5, nb::call_guard<nb::gil_scoped_release>());
}

using Words = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

void bind_sampler(nb::module_& m) {
  m.def("argmax", &argmax_rows, "logits"_a);
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

// An automaton that several threads may use: each call takes the lock, after it has let go of the interpreter.
class SharedAutomaton {
 public:
  explicit SharedAutomaton(size_t capacity) : automaton_(capacity) {}

  template <class Use>
  auto use(const Use& use) {
    nb::gil_scoped_release released;
    std::lock_guard guard(lock_);
    return use(automaton_);
  }

  // The same with a match, which has to belong to an automaton that is not larger.
  template <class Use>
  auto use_at(const SuffixMatch& match, const Use& use) {
    return this->use([&](SuffixAutomaton& automaton) {
      if (size_t(match.state) >= automaton.states()) throw std::invalid_argument("a match of another automaton");
      return use(automaton);
    });
  }

 private:
  std::mutex lock_;
  SuffixAutomaton automaton_;
};

SuffixMatch follow(SuffixAutomaton& automaton, SuffixMatch match, const Ints& tokens) {
  for (const int32_t token : as_span(tokens)) match = automaton.follow(match, token);
  return match;
}

void bind_suffixes(nb::module_& m) {
  m.attr("longest_match") = longest_match;
  nb::class_<SuffixMatch>(m, "SuffixMatch").def(nb::init<>()).def_ro("length", &SuffixMatch::length);
  nb::class_<SharedAutomaton>(m, "SuffixAutomaton")
      .def(nb::init<size_t>(), "capacity"_a)
      .def("add", [](SharedAutomaton& a, const Ints& tokens) { a.use([&](SuffixAutomaton& it) { it.add(as_span(tokens)); }); }, "tokens"_a)
      .def_prop_ro("length", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.length(); }); })
      .def_prop_ro("capacity", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.capacity(); }); })
      .def_prop_ro("states", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.states(); }); })
      .def_prop_ro("edges", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.edges(); }); })
      .def_prop_ro("steps", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.steps(); }); })
      .def("match", [](SharedAutomaton& a) { return a.use([](SuffixAutomaton& it) { return it.match(); }); })
      .def("follow",
           [](SharedAutomaton& a, const SuffixMatch& match, const Ints& tokens) {
             return a.use_at(match, [&](SuffixAutomaton& it) { return follow(it, match, tokens); });
           },
           "match"_a, "tokens"_a)
      .def("followed",
           [](SharedAutomaton& a, const SuffixMatch& match) {
             return a.use_at(match, [&](SuffixAutomaton& it) { return it.followed(match); });
           },
           "match"_a)
      .def("count",
           [](SharedAutomaton& a, const SuffixMatch& match, int32_t token) {
             return a.use_at(match, [&](SuffixAutomaton& it) { return it.count(match, token); });
           },
           "match"_a, "token"_a)
      .def("propose",
           [](SharedAutomaton& a, const SuffixMatch& match, size_t budget, float least, float least_path, bool chain, size_t shortest) {
             SuffixDraft draft = a.use_at(match, [&](SuffixAutomaton& it) {
               return it.propose(match, {budget, least, least_path, chain, shortest});
             });
             return nb::make_tuple(std::move(draft.tokens), std::move(draft.parents), std::move(draft.confidence));
           },
           "match"_a, nb::kw_only(), "budget"_a, "least"_a, "least_path"_a, "chain"_a, "shortest"_a);
}

}  // namespace
}  // namespace borrador

NB_MODULE(_native, m) {
  m.doc() = "The native engine of borrador.";
  nb::set_leak_warnings(false);
  borrador::bind_shape(m);
  borrador::bind_caches(m);
  borrador::bind_engine(m);
  borrador::bind_rows(m);
  borrador::bind_sampler(m);
  borrador::bind_suffixes(m);
  borrador::bind_successors(m);
}
