#include <algorithm>

#include "kernels.h"

namespace borrador {

const KernelTable& kernels_for(Isa isa) {
  switch (isa) {
#ifdef BORRADOR_X86
    case Isa::avx512vnni: return avx512vnni_kernels();
    case Isa::avx2: return avx2_kernels();
#endif
#ifdef BORRADOR_AVXVNNI
    case Isa::avxvnni: return avxvnni_kernels();
#endif
#ifdef BORRADOR_ARM64
    case Isa::neon: return neon_kernels();
#endif
    default: return portable_kernels();
  }
}

TilePlace place_row(const KernelTable& kernels, size_t columns, size_t row, size_t count) {
  const size_t first = row / kernels.tile_rows * kernels.tile_rows;
  return {first * activation_blocks(columns) * activation_bytes_per_row_block, row - first, std::min(kernels.tile_rows, count - first)};
}

void quantise_tile(const KernelTable& kernels, const float* values, size_t columns, size_t tile, size_t count, size_t first, size_t last,
                   uint8_t* activations) {
  const size_t begin = tile * kernels.tile_rows, end = std::min(begin + kernels.tile_rows, count);
  for (size_t row = begin; row < end; ++row) {
    const TilePlace place = place_row(kernels, columns, row, count);
    kernels.quantise(values + row * columns, columns, first, last, activations + place.offset, place.row, place.rows);
  }
}

}  // namespace borrador
