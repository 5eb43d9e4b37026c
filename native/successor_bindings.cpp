// SuccessorTable in Python. A round asks for microseconds of work, in which a thread keeps the interpreter: to let go of
// it may mean to wait for milliseconds until another thread does.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "successor_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace borrador {
namespace {

using Tokens = std::vector<int32_t>;
using IntRows = nb::ndarray<const int32_t, nb::ndim<2>, nb::device::cpu>;
using FloatRows = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;

constexpr size_t long_text = 1024;  // tokens; to read more takes long enough to let others have the interpreter

// A table that several threads may use. Whoever holds its lock never waits for the interpreter: it is taken after that was
// let go of, or else no Python object is touched meanwhile.
class SharedTable {
 public:
  explicit SharedTable(size_t most) : table_(most) {}

  template <class Use>
  auto use(const Use& use) {
    std::lock_guard guard(lock_);
    return use(table_);
  }

 private:
  std::mutex lock_;
  SuccessorTable table_;
};

// The last tokens of a sequence, at most `count` of them.
Tokens last_tokens(const nb::sequence& sequence, size_t count) {
  const size_t length = nb::len(sequence), begin = length - std::min(count, length);
  Tokens tokens;
  tokens.reserve(length - begin);
  for (size_t index = begin; index < length; ++index) {
    const auto item = nb::steal(PySequence_GetItem(sequence.ptr(), Py_ssize_t(index)));
    if (!item.is_valid()) nb::raise_python_error();
    tokens.push_back(nb::cast<int32_t>(item));
  }
  return tokens;
}

Tail tail_of(const Tokens& tokens) {
  Tail tail;
  for (const int32_t token : tokens) tail = tail.then(token);
  return tail;
}

// Learns what followed what in the part of a context that is new to the table; its tail.
Tail read(SharedTable& shared, const nb::sequence& context) {
  const size_t length = nb::len(context);
  const size_t unread = shared.use([&](SuccessorTable& table) { return table.unread(length); });
  const Tokens end = last_tokens(context, std::max(unread, longest_tail));
  const auto learn = [&] { return shared.use([&](SuccessorTable& table) { return table.read(end, length); }); };
  if (end.size() <= long_text) return learn();
  nb::gil_scoped_release released;
  return learn();
}

template <class Object, class T>
nb::tuple tuple_of(const std::vector<T>& values) {
  const auto tuple = nb::steal<nb::tuple>(PyTuple_New(Py_ssize_t(values.size())));
  if (!tuple.is_valid()) nb::raise_python_error();
  for (size_t i = 0; i < values.size(); ++i)
    if (PyTuple_SetItem(tuple.ptr(), Py_ssize_t(i), Object(values[i]).release().ptr()) != 0) nb::raise_python_error();
  return tuple;
}

nb::tuple grow(SharedTable& shared, const nb::sequence& context, int64_t budget) {
  const Tail tail = read(shared, context);
  const auto most = size_t(std::max<int64_t>(budget, 0));
  const SuccessorTree tree = shared.use([&](SuccessorTable& table) { return table.grow(tail, most); });
  return nb::make_tuple(tuple_of<nb::int_>(tree.tokens), tuple_of<nb::int_>(tree.parents),
                        tuple_of<nb::float_>(tree.confidence));
}

nb::tuple follow(SharedTable& shared, const nb::sequence& context, const Tokens& path, int64_t count) {
  Tail tail = read(shared, context);
  for (const int32_t token : path) tail = tail.then(token);
  const auto most = size_t(std::max<int64_t>(count, 0));
  return tuple_of<nb::int_>(shared.use([&](SuccessorTable& table) { return table.follow(tail, most); }));
}

// The parents of a draft, checked; of a chain where none are given.
Tokens parents_of(size_t count, const std::optional<Tokens>& given) {
  Tokens parents(count);
  std::iota(parents.begin(), parents.end(), -1);
  if (!given) return parents;
  if (given->size() != count) throw std::invalid_argument("every token needs one parent");
  for (size_t i = 0; i < count; ++i)
    if ((*given)[i] < -1 || (*given)[i] > parents[i]) throw std::invalid_argument("a parent must come before its token");
  return *given;
}

// The first `columns` values of every row, row by row.
template <class T, class Rows>
std::vector<T> first_columns(const Rows& rows, size_t columns) {
  std::vector<T> values;
  values.reserve(rows.shape(0) * columns);
  for (size_t row = 0; row < rows.shape(0); ++row)
    for (size_t column = 0; column < columns; ++column)
      values.push_back(rows.data()[int64_t(row) * rows.stride(0) + int64_t(column) * rows.stride(1)]);
  return values;
}

void learn(SharedTable& shared, const nb::sequence& context, const Tokens& tokens, const std::optional<Tokens>& parents,
           const IntRows& ids, const FloatRows& logits) {
  const Tail tail = tail_of(last_tokens(context, longest_tail));
  const Tokens checked = parents_of(tokens.size(), parents);
  const size_t rows = tokens.size() + 1, columns = std::min(ids.shape(1), most_successors);
  if (ids.shape(0) != rows || logits.shape(0) != rows)
    throw std::invalid_argument("every token needs a row, and the context one");
  if (columns == 0 || logits.shape(1) < columns) throw std::invalid_argument("every successor needs a logit");
  const auto best = first_columns<int32_t>(ids, columns);
  const auto values = first_columns<float>(logits, columns);
  shared.use([&](SuccessorTable& table) { table.learn(tail, {tokens, checked, best.data(), values.data(), columns}); });
}

std::vector<std::tuple<int32_t, double>> following(SharedTable& shared, const Tokens& tail) {
  const Following found = shared.use([&](SuccessorTable& table) { return table.following(tail_of(tail)); });
  std::vector<std::tuple<int32_t, double>> all;
  for (const Successor& next : found) all.emplace_back(next.token, next.probability);
  return all;
}

}  // namespace

void bind_successors(nb::module_& m) {
  m.attr("most_successors") = most_successors;
  nb::class_<SharedTable>(m, "SuccessorTable")
      .def(nb::init<size_t>(), "most"_a)
      .def("__len__", [](SharedTable& shared) { return shared.use([](SuccessorTable& table) { return table.size(); }); })
      .def("clear", [](SharedTable& shared) { shared.use([](SuccessorTable& table) { table.clear(); }); })
      .def("learn", &learn, "context"_a, "tokens"_a, "parents"_a.none(), "ids"_a, "logits"_a)
      .def("grow", &grow, "context"_a, "budget"_a)
      .def("follow", &follow, "context"_a, "path"_a, "count"_a)
      .def("following", &following, "tail"_a);
}

}  // namespace borrador
