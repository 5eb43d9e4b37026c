// AVX-512 with VNNI: one register holds sixteen lanes.
#include <immintrin.h>

#include "body.h"
#include "winograd_dots.h"

namespace borrador {
namespace {

struct Avx512Vnni {
  using U8 = __m512i;
  using I32 = __m512i;
  using F32 = __m512;
  static constexpr int tile_rows = 8, dot_sums = 16;
  static constexpr bool wide_takes_offset = false;

  BORRADOR_INLINE static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }

  static U8 load_u8(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static U8 set_u8(int value) { return _mm512_set1_epi8(char(value)); }
  static U8 and_u8(U8 a, U8 b) { return _mm512_and_si512(a, b); }
  template <int Count>
  static U8 shift_right(U8 a) { return _mm512_srli_epi16(a, Count); }
  // Moves bit `from` of every byte to bit `to`; bits around it are rubbish, to be masked.
  static U8 shift_bit(U8 a, int from, int to) { return from >= to ? _mm512_srli_epi16(a, unsigned(from - to)) : _mm512_slli_epi16(a, unsigned(to - from)); }
  // base | (bits & mask).
  static U8 or_masked(U8 base, U8 bits, U8 mask) { return _mm512_ternarylogic_epi64(base, bits, mask, 0xf8); }

  // table[index] for sixteen entries.
  static U8 look_up(const uint8_t* table, U8 index) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), index);
  }

  static I32 zero_i32() { return _mm512_setzero_si512(); }
  static I32 broadcast_i32(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static I32 load_u8_i32(const uint8_t* p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  template <int Count>
  static I32 shift_left(I32 a) { return _mm512_slli_epi32(a, Count); }
  // Rounds down.
  template <int Count>
  static I32 divide_by_power(I32 a) { return _mm512_srai_epi32(a, Count); }
  static I32 add_i32(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
  static I32 mul_i32(I32 a, I32 b) { return _mm512_mullo_epi32(a, b); }
  static I32 xor_i32(I32 a, I32 b) { return _mm512_xor_si512(a, b); }
  template <int Count>
  static I32 shift_right_i32(I32 a) { return _mm512_srli_epi32(a, Count); }
  template <bool Wide>
  static I32 dot4(I32 sum, U8 codes, const int8_t* quad) {
    int32_t four;
    std::memcpy(&four, quad, 4);
    return _mm512_dpbusd_epi32(sum, codes, _mm512_set1_epi32(four));
  }

  static F32 zero_f32() { return _mm512_setzero_ps(); }
  static F32 set(float value) { return _mm512_set1_ps(value); }
  static F32 broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static F32 load(const float* p) { return _mm512_loadu_ps(p); }
  static F32 load_f16(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F32 load_bf16(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
  }
  static void store(float* p, F32 a) { _mm512_storeu_ps(p, a); }
  static F32 to_f32(I32 a) { return _mm512_cvtepi32_ps(a); }
  static I32 round(F32 a) { return _mm512_cvtps_epi32(a); }
  static void store_i8(int8_t* p, I32 a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a)); }
  static F32 power_of_two(I32 n) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23)); }
  static F32 add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
  static F32 sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
  static F32 mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
  static F32 div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
  static F32 min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
  static F32 max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
  static float largest(F32 a) { return _mm512_reduce_max_ps(a); }
  static int32_t sum(I32 a) { return _mm512_reduce_add_epi32(a); }
  // A bit for every lane in which a <= b.
  static uint32_t at_most(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static F32 abs(F32 a) { return _mm512_abs_ps(a); }
  static F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
  static F32 negative_fma(F32 a, F32 b, F32 c) { return _mm512_fnmadd_ps(a, b, c); }

  // Attention's integers.
  using I16 = __m512i;
  static __m256i load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static I16 load_pairs(const uint8_t* p) { return _mm512_cvtepu8_epi16(load_bytes(p)); }
  static I16 load_pairs(const int8_t* p) { return _mm512_cvtepi8_epi16(load_bytes(p)); }
  // Bits Shift..Shift+3 of each byte.
  template <int Shift>
  static I16 load_nibble_pairs(const uint8_t* p) { return _mm512_and_si512(_mm512_srli_epi16(load_pairs(p), Shift), _mm512_set1_epi16(15)); }
  // Lanes of a and b without their Shift lowest bits, which then fit into sixteen.
  template <int Shift>
  static I16 pack_pairs(I32 a, I32 b) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srai_epi32(a, Shift), _mm512_slli_epi32(b, 16 - Shift));
  }
  static I16 mul_pairs(I16 a, I16 b) { return _mm512_mullo_epi16(a, b); }
  static I16 load_i16(const int16_t* p) { return _mm512_loadu_si512(p); }
  static I16 broadcast_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, 4);
    return _mm512_set1_epi32(pair);
  }
  static I16 add_i16(I16 a, I16 b) { return _mm512_add_epi16(a, b); }
  // Neighbouring pairs change places; the later of the two becomes 0.
  static I16 next_pair(I16 a) { return _mm512_maskz_shuffle_epi32(0x5555, a, _MM_PERM_CDAB); }
  static I32 dot2(I32 sum, I16 a, I16 b) {
#ifdef __GNUC__  // which copies the sum around the built-in function, at times through memory
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return _mm512_dpwssd_epi32(sum, a, b);
#endif
  }
  static I32 set_i32(int32_t value) { return _mm512_set1_epi32(value); }
  static I32 sub_i32(I32 a, I32 b) { return _mm512_sub_epi32(a, b); }
  static I32 load_i32(const int32_t* p) { return _mm512_loadu_si512(p); }
  static void store_i32(int32_t* p, I32 a) { _mm512_storeu_si512(p, a); }
  static void store_i16(int16_t* p, I32 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtsepi32_epi16(a)); }
};

}  // namespace

const KernelTable& avx512vnni_kernels() {
  static constexpr KernelTable table = [] {
    KernelTable own = kernel_table<Avx512Vnni>("avx512vnni");
    own.dots = winograd_dots<Avx512Vnni>;
    return own;
  }();
  return table;
}

}  // namespace borrador
