// AVX2 with AVX-VNNI, the 256-bit dot product of processors without AVX-512. Only products of integers differ from AVX2.
#include "avx2_operations.h"

namespace borrador {
namespace {

struct AvxVnni : Avx2 {
  static constexpr bool wide_takes_offset = false;

  // Four products of unsigned and signed bytes added to each 32-bit lane, exactly.
  static __m256i dot_half(__m256i sum, __m256i codes, __m256i values) {
#ifdef BORRADOR_AVXVNNI_AS_AVX512  // how native/checks runs this file on processors with AVX-512 that lack AVX-VNNI
    return _mm256_dpbusd_epi32(sum, codes, values);
#else
    return _mm256_dpbusd_avx_epi32(sum, codes, values);
#endif
  }
  template <bool Wide>
  static I32 dot4(I32 sum, U8 codes, const int8_t* quad) {
    int32_t four;
    std::memcpy(&four, quad, 4);
    const __m256i values = _mm256_set1_epi32(four);
    return {dot_half(sum.low, codes.low, values), dot_half(sum.high, codes.high, values)};
  }
};

}  // namespace

const KernelTable& avxvnni_kernels() {
  static const KernelTable table = [] {
    KernelTable own = avx2_kernels();
    own.name = "avxvnni";
    own.matmul = matmul<AvxVnni>;
    return own;
  }();
  return table;
}

}  // namespace borrador
