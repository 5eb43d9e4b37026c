// AVX2 with FMA and F16C.
#include "avx2_operations.h"

namespace borrador {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable table = kernel_table<Avx2>("avx2");
  return table;
}

}  // namespace borrador
