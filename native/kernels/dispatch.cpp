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
  return {first * activation_groups(columns) * activation_bytes_per_row_group, row - first, std::min(kernels.tile_rows, count - first)};
}

void quantise_tiles(const KernelTable& kernels, const float* values, size_t columns, size_t begin, size_t end, size_t count, uint8_t* activations) {
  for (size_t row = begin; row < end; ++row) {
    const TilePlace place = place_row(kernels, columns, row, count);
    kernels.quantise(values + row * columns, columns, 0, activation_groups(columns), activations + place.offset, place.row, place.rows);
  }
}

}  // namespace borrador
