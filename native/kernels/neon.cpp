// NEON with the dot product of ARMv8.2: four registers hold sixteen lanes.
//
// There is no variant for i8mm: its matrix product takes eight consecutive k of two rows where a vector holds four k of
// four rows (packed.h), and its mixed-sign dot product would save one exclusive or of the codes of 8-bit formats.
#include <arm_neon.h>

#include "body.h"

namespace borrador {
namespace {

template <class Vector>
struct Four {
  Vector a, b, c, d;
};

// What `of` makes of the four registers of its arguments.
template <class Of, class... Vectors>
auto each(Of&& of, const Four<Vectors>&... x) {
  return Four<decltype(of(x.a...))>{of(x.a...), of(x.b...), of(x.c...), of(x.d...)};
}

struct Neon {
  using U8 = Four<uint8x16_t>;
  using I32 = Four<int32x4_t>;
  using F32 = Four<float32x4_t>;
  static constexpr int tile_rows = 4, dot_sums = 4;
  static constexpr bool wide_takes_offset = true;

  BORRADOR_INLINE static void prefetch(const uint8_t* p) {
#ifdef _MSC_VER
    __prefetch(p);
#else
    __builtin_prefetch(p);
#endif
  }

  template <class Vector>
  static Four<Vector> same(Vector x) { return {x, x, x, x}; }

  static U8 load_u8(const uint8_t* p) { return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}; }
  static U8 set_u8(int value) { return same(vdupq_n_u8(uint8_t(value))); }
  static U8 and_u8(U8 x, U8 y) { return each([](auto p, auto q) { return vandq_u8(p, q); }, x, y); }
  template <int Count>
  static U8 shift_right(U8 x) { return each([](auto p) { return vshrq_n_u8(p, Count); }, x); }
  // Moves bit `from` of every byte to bit `to`.
  static U8 shift_bit(U8 x, int from, int to) {
    const int8x16_t left = vdupq_n_s8(int8_t(to - from));
    return each([&](auto p) { return vshlq_u8(p, left); }, x);
  }
  // base | (bits & mask).
  static U8 or_masked(U8 base, U8 bits, U8 mask) {
    return each([](auto p, auto q, auto m) { return vorrq_u8(p, vandq_u8(q, m)); }, base, bits, mask);
  }

  // table[index] for sixteen entries.
  static U8 look_up(const uint8_t* table, U8 index) {
    const uint8x16_t entries = vld1q_u8(table);
    return each([&](auto i) { return vqtbl1q_u8(entries, i); }, index);
  }

  static I32 zero_i32() { return same(vdupq_n_s32(0)); }
  static I32 broadcast_i32(const int32_t* p) { return same(vdupq_n_s32(*p)); }
  static I32 widen_u8(uint8x16_t x) {
    const uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_u8(vget_high_u8(x));
    const Four<uint16x4_t> words{vget_low_u16(low), vget_high_u16(low), vget_low_u16(high), vget_high_u16(high)};
    return each([](auto p) { return vreinterpretq_s32_u32(vmovl_u16(p)); }, words);
  }
  static I32 load_u8_i32(const uint8_t* p) { return widen_u8(vld1q_u8(p)); }
  static I32 set_i32(int32_t value) { return same(vdupq_n_s32(value)); }
  template <int Count>
  static I32 shift_left(I32 x) { return each([](auto p) { return vshlq_n_s32(p, Count); }, x); }
  // Rounds down.
  template <int Count>
  static I32 divide_by_power(I32 x) { return each([](auto p) { return vshrq_n_s32(p, Count); }, x); }
  static I32 add_i32(I32 x, I32 y) { return each([](auto p, auto q) { return vaddq_s32(p, q); }, x, y); }
  static I32 mul_i32(I32 x, I32 y) { return each([](auto p, auto q) { return vmulq_s32(p, q); }, x, y); }
  static I32 xor_i32(I32 x, I32 y) { return each([](auto p, auto q) { return veorq_s32(p, q); }, x, y); }
  template <int Count>
  static I32 shift_right_i32(I32 x) {
    return each([](auto p) { return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(p), Count)); }, x);
  }

  // The product takes signed bytes. Codes up to 127 are that already; Wide: codes up to 255, less 128.
  template <bool Wide>
  static I32 dot4(I32 sum, U8 codes, const int8_t* quad) {
    int32_t four;
    std::memcpy(&four, quad, 4);
    const int8x16_t values = vreinterpretq_s8_s32(vdupq_n_s32(four));
    if constexpr (Wide) codes = each([](auto p) { return veorq_u8(p, vdupq_n_u8(0x80)); }, codes);
    return each([&](auto s, auto p) { return vdotq_s32(s, vreinterpretq_s8_u8(p), values); }, sum, codes);
  }

  static F32 zero_f32() { return set(0.0f); }
  static F32 set(float value) { return same(vdupq_n_f32(value)); }
  static F32 broadcast(const float* p) { return set(*p); }
  static F32 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
  static Four<uint16x4_t> load_u16(const uint16_t* p) { return {vld1_u16(p), vld1_u16(p + 4), vld1_u16(p + 8), vld1_u16(p + 12)}; }
  static F32 load_f16(const uint16_t* p) {
    return each([](auto h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }, load_u16(p));
  }
  static F32 load_bf16(const uint16_t* p) {
    return each([](auto h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }, load_u16(p));
  }
  static void store(float* p, F32 x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
  }
  static F32 to_f32(I32 x) { return each([](auto p) { return vcvtq_f32_s32(p); }, x); }
  // To nearest even. What does not fit becomes the least integer, as on x86, rather than the nearest one.
  static I32 round(F32 x) {
    const float32x4_t limit = vdupq_n_f32(2147483648.0f);
    const int32x4_t least = vdupq_n_s32(INT32_MIN);
    return each([&](auto p) { return vbslq_s32(vcaltq_f32(p, limit), vcvtnq_s32_f32(p), least); }, x);
  }
  static void store_i8(int8_t* p, I32 x) {
    const int16x8_t low = vcombine_s16(vqmovn_s32(x.a), vqmovn_s32(x.b)), high = vcombine_s16(vqmovn_s32(x.c), vqmovn_s32(x.d));
    vst1q_s8(p, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
  }
  static F32 power_of_two(I32 n) {
    return each([](auto p) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(p, vdupq_n_s32(127)), 23)); }, n);
  }
  static F32 add(F32 x, F32 y) { return each([](auto p, auto q) { return vaddq_f32(p, q); }, x, y); }
  static F32 sub(F32 x, F32 y) { return each([](auto p, auto q) { return vsubq_f32(p, q); }, x, y); }
  static F32 mul(F32 x, F32 y) { return each([](auto p, auto q) { return vmulq_f32(p, q); }, x, y); }
  static F32 div(F32 x, F32 y) { return each([](auto p, auto q) { return vdivq_f32(p, q); }, x, y); }
  // The second where one is not a number, as on x86.
  static F32 min(F32 x, F32 y) { return each([](auto p, auto q) { return vbslq_f32(vcltq_f32(p, q), p, q); }, x, y); }
  static F32 max(F32 x, F32 y) { return each([](auto p, auto q) { return vbslq_f32(vcgtq_f32(p, q), p, q); }, x, y); }
  static float largest(F32 x) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d))); }
  static int32_t sum(I32 x) { return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d))); }
  // A bit for every lane in which x <= y.
  static uint32_t at_most(F32 x, F32 y) {
    static constexpr uint32_t places[4] = {1, 2, 4, 8};
    const uint32x4_t bits = vld1q_u32(places);
    const auto found = each([&](auto p, auto q) { return vandq_u32(vcleq_f32(p, q), bits); }, x, y);
    return vaddvq_u32(found.a) | vaddvq_u32(found.b) << 4 | vaddvq_u32(found.c) << 8 | vaddvq_u32(found.d) << 12;
  }
  static F32 abs(F32 x) { return each([](auto p) { return vabsq_f32(p); }, x); }
  static F32 fma(F32 x, F32 y, F32 z) { return each([](auto p, auto q, auto r) { return vfmaq_f32(r, p, q); }, x, y, z); }
  static F32 negative_fma(F32 x, F32 y, F32 z) { return each([](auto p, auto q, auto r) { return vfmsq_f32(r, p, q); }, x, y, z); }

  // Attention's integers.
  using I16 = Four<int16x8_t>;
  static I16 widen(uint8x16_t x, uint8x16_t y) {
    const Four<uint8x8_t> bytes{vget_low_u8(x), vget_high_u8(x), vget_low_u8(y), vget_high_u8(y)};
    return each([](auto p) { return vreinterpretq_s16_u16(vmovl_u8(p)); }, bytes);
  }
  static I16 load_pairs(const uint8_t* p) { return widen(vld1q_u8(p), vld1q_u8(p + 16)); }
  static I16 load_pairs(const int8_t* p) {
    const Four<int8x8_t> bytes{vld1_s8(p), vld1_s8(p + 8), vld1_s8(p + 16), vld1_s8(p + 24)};
    return each([](auto q) { return vmovl_s8(q); }, bytes);
  }
  // Bits Shift..Shift+3 of each byte.
  template <int Shift>
  static I16 load_nibble_pairs(const uint8_t* p) {
    const auto nibble = [](uint8x16_t x) {
      if constexpr (Shift > 0) x = vshrq_n_u8(x, Shift);
      return vandq_u8(x, vdupq_n_u8(15));
    };
    return widen(nibble(vld1q_u8(p)), nibble(vld1q_u8(p + 16)));
  }
  // Lanes of x and y without their Shift lowest bits, which then fit into sixteen.
  template <int Shift>
  static I16 pack_pairs(I32 x, I32 y) {
    const auto drop = [](int32x4_t p) {
      if constexpr (Shift > 0) return vshrq_n_s32(p, Shift);
      else return p;
    };
    return each([&](auto p, auto q) { return vreinterpretq_s16_s32(vsliq_n_s32(drop(p), drop(q), 16)); }, x, y);
  }
  static I16 mul_pairs(I16 x, I16 y) { return each([](auto p, auto q) { return vmulq_s16(p, q); }, x, y); }
  static I16 load_i16(const int16_t* p) { return {vld1q_s16(p), vld1q_s16(p + 8), vld1q_s16(p + 16), vld1q_s16(p + 24)}; }
  static I16 broadcast_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, 4);
    return same(vreinterpretq_s16_s32(vdupq_n_s32(pair)));
  }
  static I32 dot2(I32 sum, I16 x, I16 y) {
    return each(
        [](auto s, auto p, auto q) {
          const int32x4_t low = vmull_s16(vget_low_s16(p), vget_low_s16(q)), high = vmull_s16(vget_high_s16(p), vget_high_s16(q));
          return vaddq_s32(s, vpaddq_s32(low, high));
        },
        sum, x, y);
  }
  static I32 load_i32(const int32_t* p) { return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)}; }
  static void store_i32(int32_t* p, I32 x) {
    vst1q_s32(p, x.a);
    vst1q_s32(p + 4, x.b);
    vst1q_s32(p + 8, x.c);
    vst1q_s32(p + 12, x.d);
  }
  static void store_i16(int16_t* p, I32 x) {
    vst1q_s16(p, vcombine_s16(vqmovn_s32(x.a), vqmovn_s32(x.b)));
    vst1q_s16(p + 8, vcombine_s16(vqmovn_s32(x.c), vqmovn_s32(x.d)));
  }
};

}  // namespace

const KernelTable& neon_kernels() {
  static constexpr KernelTable table = kernel_table<Neon>("neon");
  return table;
}

}  // namespace borrador
