// Standard C++ only: sixteen lanes are an array. The reference for the other instruction sets, and the fallback.
#include "../float16.h"
#include "body.h"

namespace borrador {
namespace {

template <class T, size_t Count>
struct Lanes {
  T value[Count];

  template <class Make>
  static Lanes make(Make&& of_lane) {
    Lanes result;
    for (size_t i = 0; i < Count; ++i) result.value[i] = of_lane(i);
    return result;
  }
};

struct Portable {
  using U8 = Lanes<uint8_t, 64>;
  using I32 = Lanes<int32_t, lanes>;
  using F32 = Lanes<float, lanes>;
  static constexpr int tile_rows = 4, dot_sums = 4;
  static constexpr bool wide_takes_offset = false;

  static void prefetch(const uint8_t*) {}

  static U8 load_u8(const uint8_t* p) { return U8::make([&](size_t i) { return p[i]; }); }
  static U8 set_u8(int value) { return U8::make([&](size_t) { return uint8_t(value); }); }
  static U8 and_u8(U8 a, U8 b) { return U8::make([&](size_t i) { return uint8_t(a.value[i] & b.value[i]); }); }
  template <int Count>
  static U8 shift_right(U8 a) { return U8::make([&](size_t i) { return uint8_t(a.value[i] >> Count); }); }
  static U8 shift_bit(U8 a, int from, int to) {
    return U8::make([&](size_t i) { return uint8_t(from >= to ? a.value[i] >> (from - to) : a.value[i] << (to - from)); });
  }
  static U8 or_masked(U8 base, U8 bits, U8 mask) {
    return U8::make([&](size_t i) { return uint8_t(base.value[i] | (bits.value[i] & mask.value[i])); });
  }

  static U8 look_up(const uint8_t* table, U8 index) { return U8::make([&](size_t i) { return table[index.value[i]]; }); }

  static I32 zero_i32() { return I32{}; }
  static I32 broadcast_i32(const int32_t* p) { return I32::make([&](size_t) { return *p; }); }
  static I32 load_u8_i32(const uint8_t* p) { return I32::make([&](size_t i) { return int32_t(p[i]); }); }
  static I32 set_i32(int32_t value) { return I32::make([&](size_t) { return value; }); }
  template <int Count>
  static I32 shift_left(I32 a) { return I32::make([&](size_t i) { return a.value[i] * (1 << Count); }); }
  // Rounds down.
  template <int Count>
  static I32 divide_by_power(I32 a) { return I32::make([&](size_t i) { return a.value[i] >> Count; }); }
  static I32 add_i32(I32 a, I32 b) { return I32::make([&](size_t i) { return int32_t(uint32_t(a.value[i]) + uint32_t(b.value[i])); }); }
  // Products wrap around.
  static I32 mul_i32(I32 a, I32 b) { return I32::make([&](size_t i) { return int32_t(uint32_t(a.value[i]) * uint32_t(b.value[i])); }); }
  static I32 xor_i32(I32 a, I32 b) { return I32::make([&](size_t i) { return a.value[i] ^ b.value[i]; }); }
  template <int Count>
  static I32 shift_right_i32(I32 a) { return I32::make([&](size_t i) { return int32_t(uint32_t(a.value[i]) >> Count); }); }
  template <bool Wide>
  static I32 dot4(I32 sum, U8 codes, const int8_t* quad) {
    for (size_t i = 0; i < lanes; ++i)
      sum.value[i] += codes.value[4 * i] * quad[0] + codes.value[4 * i + 1] * quad[1] + codes.value[4 * i + 2] * quad[2] + codes.value[4 * i + 3] * quad[3];
    return sum;
  }

  static F32 zero_f32() { return F32{}; }
  static F32 set(float value) { return F32::make([&](size_t) { return value; }); }
  static F32 broadcast(const float* p) { return set(*p); }
  static F32 load(const float* p) { return F32::make([&](size_t i) { return p[i]; }); }
  static F32 load_f16(const uint16_t* p) { return F32::make([&](size_t i) { return f16_to_f32(p[i]); }); }
  static F32 load_bf16(const uint16_t* p) { return F32::make([&](size_t i) { return bf16_to_f32(p[i]); }); }
  static void store(float* p, F32 a) { std::copy(a.value, a.value + lanes, p); }
  static F32 to_f32(I32 a) { return F32::make([&](size_t i) { return float(a.value[i]); }); }
  // Not-a-number becomes the least integer, as x86 does, rather than undefined behaviour.
  static I32 round(F32 a) {
    return I32::make([&](size_t i) { return std::fabs(a.value[i]) < 2147483648.0f ? int32_t(std::nearbyint(a.value[i])) : INT32_MIN; });
  }
  static void store_i8(int8_t* p, I32 a) {
    for (size_t i = 0; i < lanes; ++i) p[i] = int8_t(std::clamp(a.value[i], -128, 127));
  }
  static F32 power_of_two(I32 n) { return F32::make([&](size_t i) { return std::bit_cast<float>(uint32_t(n.value[i] + 127u) << 23); }); }
  static F32 add(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] + b.value[i]; }); }
  static F32 sub(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] - b.value[i]; }); }
  static F32 mul(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] * b.value[i]; }); }
  static F32 div(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] / b.value[i]; }); }
  static F32 min(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] < b.value[i] ? a.value[i] : b.value[i]; }); }
  static F32 max(F32 a, F32 b) { return F32::make([&](size_t i) { return a.value[i] > b.value[i] ? a.value[i] : b.value[i]; }); }
  static float largest(F32 a) { return *std::max_element(a.value, a.value + lanes); }
  static int32_t sum(I32 a) {
    int32_t total = 0;
    for (size_t i = 0; i < lanes; ++i) total += a.value[i];
    return total;
  }
  // A bit for every lane in which a <= b.
  static uint32_t at_most(F32 a, F32 b) {
    uint32_t found = 0;
    for (size_t i = 0; i < lanes; ++i) found |= uint32_t(a.value[i] <= b.value[i]) << i;
    return found;
  }
  static F32 abs(F32 a) { return F32::make([&](size_t i) { return std::fabs(a.value[i]); }); }
  static F32 fma(F32 a, F32 b, F32 c) { return F32::make([&](size_t i) { return std::fma(a.value[i], b.value[i], c.value[i]); }); }
  static F32 negative_fma(F32 a, F32 b, F32 c) { return F32::make([&](size_t i) { return std::fma(-a.value[i], b.value[i], c.value[i]); }); }

  // Attention's integers.
  using I16 = Lanes<int16_t, 2 * lanes>;
  template <class Byte>
  static I16 load_pairs(const Byte* p) { return I16::make([&](size_t i) { return int16_t(p[i]); }); }
  template <int Shift>
  static I16 load_nibble_pairs(const uint8_t* p) { return I16::make([&](size_t i) { return int16_t(p[i] >> Shift & 15); }); }
  template <int Shift>
  static I16 pack_pairs(I32 a, I32 b) { return I16::make([&](size_t i) { return int16_t((i % 2 ? b : a).value[i / 2] >> Shift); }); }
  static I16 mul_pairs(I16 a, I16 b) { return I16::make([&](size_t i) { return int16_t(a.value[i] * b.value[i]); }); }
  static I16 load_i16(const int16_t* p) { return I16::make([&](size_t i) { return p[i]; }); }
  static I16 broadcast_pair(const int16_t* p) { return I16::make([&](size_t i) { return p[i % 2]; }); }
  static I32 dot2(I32 sum, I16 a, I16 b) {
    const auto product = [&](size_t i) { return uint32_t(a.value[i] * b.value[i]); };  // unsigned sums may wrap around
    return I32::make([&](size_t i) { return int32_t(uint32_t(sum.value[i]) + product(2 * i) + product(2 * i + 1)); });
  }
  static I32 load_i32(const int32_t* p) { return I32::make([&](size_t i) { return p[i]; }); }
  static void store_i32(int32_t* p, I32 a) { std::copy(a.value, a.value + lanes, p); }
  static void store_i16(int16_t* p, I32 a) {
    for (size_t i = 0; i < lanes; ++i) p[i] = int16_t(std::clamp(a.value[i], -32768, 32767));
  }
};

}  // namespace

const KernelTable& portable_kernels() {
  static constexpr KernelTable table = kernel_table<Portable>("portable");
  return table;
}

}  // namespace borrador
