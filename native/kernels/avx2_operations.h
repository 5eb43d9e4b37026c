// The operations of AVX2 with FMA and F16C: two registers hold sixteen lanes. Internal linkage, as in body.h: the files that
// include this are compiled with different flags.
#pragma once
#include <immintrin.h>

#include "body.h"

namespace borrador {
namespace {

struct Pair {
  __m256i low, high;
};
struct FloatPair {
  __m256 low, high;
};

struct Avx2 {
  using U8 = Pair;
  using I32 = Pair;
  using F32 = FloatPair;
  static constexpr int tile_rows = 4, dot_sums = 4;
  static constexpr bool wide_takes_offset = true;

  BORRADOR_INLINE static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
  static __m256i load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

  static U8 load_u8(const uint8_t* p) { return {load_half(p), load_half(p + 32)}; }
  static U8 set_u8(int value) { return {_mm256_set1_epi8(char(value)), _mm256_set1_epi8(char(value))}; }
  static U8 and_u8(U8 a, U8 b) { return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)}; }
  template <int Count>
  static U8 shift_right(U8 a) { return {_mm256_srli_epi16(a.low, Count), _mm256_srli_epi16(a.high, Count)}; }
  // Moves bit `from` of every byte to bit `to`; bits around it are rubbish, to be masked.
  static U8 shift_bit(U8 a, int from, int to) {
    if (from >= to) return {_mm256_srli_epi16(a.low, from - to), _mm256_srli_epi16(a.high, from - to)};
    return {_mm256_slli_epi16(a.low, to - from), _mm256_slli_epi16(a.high, to - from)};
  }
  // base | (bits & mask).
  static U8 or_masked(U8 base, U8 bits, U8 mask) {
    const U8 kept = and_u8(bits, mask);
    return {_mm256_or_si256(base.low, kept.low), _mm256_or_si256(base.high, kept.high)};
  }

  // table[index] for sixteen entries.
  static U8 look_up(const uint8_t* table, U8 index) {
    const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return {_mm256_shuffle_epi8(entries, index.low), _mm256_shuffle_epi8(entries, index.high)};
  }

  static I32 zero_i32() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static I32 broadcast_i32(const int32_t* p) { return {_mm256_set1_epi32(*p), _mm256_set1_epi32(*p)}; }
  static I32 load_u8_i32(const uint8_t* p) {
    return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static I32 set_i32(int32_t value) { return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
  template <int Count>
  static I32 shift_left(I32 a) { return {_mm256_slli_epi32(a.low, Count), _mm256_slli_epi32(a.high, Count)}; }
  // Rounds down.
  template <int Count>
  static I32 divide_by_power(I32 a) { return {_mm256_srai_epi32(a.low, Count), _mm256_srai_epi32(a.high, Count)}; }
  static I32 add_i32(I32 a, I32 b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
  static I32 mul_i32(I32 a, I32 b) { return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)}; }
  static I32 xor_i32(I32 a, I32 b) { return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)}; }
  template <int Count>
  static I32 shift_right_i32(I32 a) { return {_mm256_srli_epi32(a.low, Count), _mm256_srli_epi32(a.high, Count)}; }

  // Products of unsigned and signed bytes are added in pairs to sixteen bits, exact up to codes of 128.
  static __m256i dot_half(__m256i sum, __m256i codes, __m256i values) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, values), _mm256_set1_epi16(1)));
  }
  // Codes up to 255 would overflow the pairs: their 128 is taken off first, and the sign moves to the values.
  static __m256i dot_signed_half(__m256i sum, __m256i codes, __m256i values) {
    const __m256i weights = _mm256_xor_si256(codes, _mm256_set1_epi8(char(0x80)));
    return dot_half(sum, _mm256_abs_epi8(weights), _mm256_sign_epi8(values, weights));
  }
  // Wide: codes up to 255, less 128.
  template <bool Wide>
  static I32 dot4(I32 sum, U8 codes, const int8_t* quad) {
    int32_t four;
    std::memcpy(&four, quad, 4);
    const __m256i values = _mm256_set1_epi32(four);
    if constexpr (Wide) return {dot_signed_half(sum.low, codes.low, values), dot_signed_half(sum.high, codes.high, values)};
    else return {dot_half(sum.low, codes.low, values), dot_half(sum.high, codes.high, values)};
  }

  static F32 zero_f32() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F32 set(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static F32 broadcast(const float* p) { return set(*p); }
  static F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static F32 load_f16(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static __m256 bf16_half(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
  }
  static F32 load_bf16(const uint16_t* p) { return {bf16_half(p), bf16_half(p + 8)}; }
  static void store(float* p, F32 a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
  }
  static F32 to_f32(I32 a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
  static I32 round(F32 a) { return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)}; }
  static void store_i8(int8_t* p, I32 a) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.low, a.high), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static __m256 power_half(__m256i n) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)); }
  static F32 power_of_two(I32 n) { return {power_half(n.low), power_half(n.high)}; }
  static F32 add(F32 a, F32 b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static F32 sub(F32 a, F32 b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static F32 mul(F32 a, F32 b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static F32 div(F32 a, F32 b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
  static F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static float largest(F32 a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
  }
  static int32_t sum(I32 a) {
    const __m256i eight = _mm256_add_epi32(a.low, a.high);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
  }
  // A bit for every lane in which a <= b.
  static uint32_t at_most(F32 a, F32 b) {
    return uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ)) |
                    _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ)) << 8);
  }
  static F32 abs(F32 a) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(a.low, magnitude), _mm256_and_ps(a.high, magnitude)};
  }
  static F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)}; }
  static F32 negative_fma(F32 a, F32 b, F32 c) { return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)}; }

  // Attention's integers.
  using I16 = Pair;
  static __m128i load_bytes(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static I16 load_pairs(const uint8_t* p) { return {_mm256_cvtepu8_epi16(load_bytes(p)), _mm256_cvtepu8_epi16(load_bytes(p + 16))}; }
  static I16 load_pairs(const int8_t* p) { return {_mm256_cvtepi8_epi16(load_bytes(p)), _mm256_cvtepi8_epi16(load_bytes(p + 16))}; }
  // Bits Shift..Shift+3 of each byte.
  template <int Shift>
  static I16 load_nibble_pairs(const uint8_t* p) {
    const I16 pairs = load_pairs(p);
    const __m256i nibble = _mm256_set1_epi16(15);
    return {_mm256_and_si256(_mm256_srli_epi16(pairs.low, Shift), nibble), _mm256_and_si256(_mm256_srli_epi16(pairs.high, Shift), nibble)};
  }
  template <int Shift>
  static __m256i pack_half(__m256i a, __m256i b) {
    return _mm256_blend_epi16(_mm256_srai_epi32(a, Shift), _mm256_slli_epi32(b, 16 - Shift), 0xaa);
  }
  // Lanes of a and b without their Shift lowest bits, which then fit into sixteen.
  template <int Shift>
  static I16 pack_pairs(I32 a, I32 b) { return {pack_half<Shift>(a.low, b.low), pack_half<Shift>(a.high, b.high)}; }
  static I16 mul_pairs(I16 a, I16 b) { return {_mm256_mullo_epi16(a.low, b.low), _mm256_mullo_epi16(a.high, b.high)}; }
  static I16 load_i16(const int16_t* p) { return {load_half(p), load_half(p + 16)}; }
  static I16 broadcast_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, 4);
    return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
  }
  static I32 dot2(I32 sum, I16 a, I16 b) {
    return {_mm256_add_epi32(sum.low, _mm256_madd_epi16(a.low, b.low)), _mm256_add_epi32(sum.high, _mm256_madd_epi16(a.high, b.high))};
  }
  static I32 load_i32(const int32_t* p) { return {load_half(p), load_half(p + 8)}; }
  static void store_i32(int32_t* p, I32 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.high);
  }
  static void store_i16(int16_t* p, I32 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(_mm256_packs_epi32(a.low, a.high), 0xd8));
  }
};

}  // namespace
}  // namespace borrador
