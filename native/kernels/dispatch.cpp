#include "kernels.h"

namespace borrador {

const KernelTable& kernels_for(Isa isa) {
  switch (isa) {
#ifdef BORRADOR_X86
    case Isa::avx512vnni: return avx512vnni_kernels();
    case Isa::avx2: return avx2_kernels();
#endif
    default: return portable_kernels();
  }
}

}  // namespace borrador
