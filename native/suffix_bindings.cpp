// SuffixAutomaton in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <stdexcept>

#include "arrays.h"
#include "bindings.h"
#include "suffix_automaton.h"

using namespace nanobind::literals;

namespace borrador {
namespace {

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

}  // namespace

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

}  // namespace borrador
