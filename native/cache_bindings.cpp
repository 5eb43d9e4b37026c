// Caches of keys and values, and the pool they share.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings.h"
#include "kv_cache.h"
#include "kv_pool.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace borrador {

namespace {

void commit(KvCache& cache, const std::vector<int32_t>& path) {
  int32_t last = -1;
  for (const int32_t row : path) {
    if (row <= last || size_t(row) >= cache.pending()) throw std::invalid_argument("a path must ascend within the pending rows");
    last = row;
  }
  cache.commit(path);
}

void assume(KvCache& cache, size_t length) {
  if (length > cache.capacity()) throw std::invalid_argument("cannot assume more than the capacity");
  cache.assume(length);
}

void rewind(KvCache& cache, size_t length) {
  if (length > cache.length()) throw std::invalid_argument("cannot rewind forwards");
  cache.rewind(length);
}

}  // namespace

void bind_caches(nb::module_& m) {
  nb::exception<CacheLimitError>(m, "CacheLimitError", PyExc_MemoryError);
  nb::class_<KvPool>(m, "KvPool")
      .def_prop_ro("used_bytes", &KvPool::used_bytes)
      .def_prop_ro("reserved_bytes", &KvPool::reserved_bytes)
      .def_prop_rw("limit_bytes", &KvPool::limit_bytes, &KvPool::limit, nb::for_setter(nb::arg().none()))
      .def("bytes_of", [](const KvPool& pool, size_t tokens) { return KvShape::chunks_of(tokens) * pool.chunk_bytes(); }, "tokens"_a);
  nb::class_<KvCache>(m, "KvCache")
      .def_prop_ro("length", &KvCache::length)
      .def_prop_ro("capacity", &KvCache::capacity)
      .def_prop_ro("pending", &KvCache::pending)
      .def("commit", &commit, "path"_a)
      .def("assume", &assume, "length"_a)
      .def("rewind", &rewind, "length"_a)
      .def("copy_from", &KvCache::copy_from, "source"_a, "length"_a);
}

}  // namespace borrador
