// Kernels one by one, for tests and measurements, and what a machine offers them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "cpu.h"
#include "memory.h"
#include "transformer.h"

using namespace nanobind::literals;

namespace borrador {

Isa parse_isa(const std::string& name) {
  if (name.empty()) return best_isa();
  for (const Isa isa : all_isas)
    if (is_available(isa) && name == kernels_for(isa).name) return isa;
  throw std::invalid_argument("instruction set " + name + " is not available here");
}

namespace {

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa isa : all_isas)
    if (is_available(isa)) names.emplace_back(kernels_for(isa).name);
  return names;
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
  repack(data.data(), matrix.format, matrix, pool->pool);
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
auto dequantise(uint32_t format, size_t rows, size_t columns, const Bytes& data, std::optional<uint32_t> kept) {
  Matrix matrix{Format(kept.value_or(format)), rows, columns};
  if (!can_repack(Format(format), matrix.format, columns) || gguf_bytes(Format(format), rows, columns) != data.shape(0))
    throw std::invalid_argument("wrong size or format of data");
  const auto pool = shared_pool(1);
  PageBuffer packed(matrix.bytes(), PageBuffer::Pages::normal);
  matrix.data = packed.data();
  std::lock_guard guard(pool->pass);
  repack(data.data(), Format(format), matrix, pool->pool);
  std::vector<float> values(rows * columns);
  for (size_t row = 0; row < rows; ++row) matrix.row(row, values.data() + row * columns);
  return owned_rows(std::move(values), rows, columns);
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("packed_bytes", [](uint32_t format, size_t rows, size_t columns) { return Matrix{Format(format), rows, columns}.bytes(); }, "format"_a, "rows"_a,
        "columns"_a);
  m.def("multiply", &multiply, "isa"_a, "format"_a, "rows"_a, "columns"_a, "data"_a, "x"_a, "threads"_a = 1);
  m.def("dequantise", &dequantise, "format"_a, "rows"_a, "columns"_a, "data"_a, "kept"_a = nb::none());
  m.def("available_isas", &available_isas);
  m.def("usable_cores", &usable_cores);
  m.def("read_bandwidth", &read_bandwidth, "threads"_a, "bytes"_a, "repeats"_a = 5, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace borrador
