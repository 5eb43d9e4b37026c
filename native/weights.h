// A weight matrix in the kernels' layout (packed.h), and the way there from a GGUF tensor.
#pragma once
#include <cstddef>
#include <cstdint>

#include "packed.h"
#include "thread_pool.h"

namespace borrador {

// `rows` output values from `columns` inputs. Memory belongs to whoever placed it.
struct Matrix {
  Format format = Format::f32;
  size_t rows = 0, columns = 0;
  uint8_t* data = nullptr;

  size_t strips() const { return (rows + lanes - 1) / lanes; }
  size_t blocks_per_strip() const;
  size_t bytes() const;          // in the kernels' layout
  size_t padded_rows() const { return strips() * lanes; }
  bool quantised() const;

  // Dequantises one row: `columns` floats.
  void row(size_t index, float* out) const;
};

// True for a format this engine holds; others must be refused before a Matrix is made.
bool is_supported(uint32_t format);

// Bytes of a tensor of this shape in a GGUF file.
size_t gguf_bytes(Format format, size_t rows, size_t columns);

// Copies a packed row into another matrix of the same format and columns, at any place in it.
void copy_row(const Matrix& from, size_t row, Matrix& to, size_t place);

// Whether rows of so many columns can be kept in a format that may differ from the file's.
bool can_repack(Format stored, Format kept, size_t columns);

// Repacks a GGUF tensor (rows of blocks) of gguf_bytes(stored, ...) bytes into matrix.data: without loss where the matrix has
// the tensor's format, else rounded to it. can_repack(...) must hold.
void repack(const uint8_t* source, Format stored, Matrix& matrix, ThreadPool& pool);

}  // namespace borrador
