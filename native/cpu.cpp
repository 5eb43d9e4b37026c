#include "cpu.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#if defined(BORRADOR_X86) && defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#elif defined(BORRADOR_X86)
#include <cpuid.h>
#elif defined(BORRADOR_ARM64) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(BORRADOR_ARM64) && defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#endif

namespace borrador {

namespace {

#if defined(BORRADOR_X86)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// CPUID; zeros for a leaf that the processor lacks. A missing sub-leaf of a leaf reads as zeros by definition.
Registers identify(unsigned leaf, unsigned sub_leaf) {
  Registers r;
#ifdef _MSC_VER
  int most[4], found[4];
  __cpuid(most, 0);
  if (unsigned(most[0]) < leaf) return r;
  __cpuidex(found, int(leaf), int(sub_leaf));
  r = {unsigned(found[0]), unsigned(found[1]), unsigned(found[2]), unsigned(found[3])};
#else
  __get_cpuid_count(leaf, sub_leaf, &r.a, &r.b, &r.c, &r.d);
#endif
  return r;
}

// The register state that the operating system saves (XCR0); 0 where it does not use XSAVE.
unsigned long long saved_state() {
  if (!(identify(1, 0).c >> 27 & 1)) return 0;
#ifdef _MSC_VER
  return _xgetbv(0);
#else
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | (unsigned long long)high << 32;
#endif
}

bool has_bits(unsigned long long value, unsigned long long bits) { return (value & bits) == bits; }

// Bits as in Intel's manual, volume 2A, CPUID.
bool has_avx2() {
  constexpr unsigned fma = 1u << 12, f16c = 1u << 29, avx2 = 1u << 5;
  return has_bits(saved_state(), 0x6) && has_bits(identify(1, 0).c, fma | f16c) && has_bits(identify(7, 0).b, avx2);
}

bool has_avxvnni() { return has_avx2() && has_bits(identify(7, 1).a, 1u << 4); }

bool has_avx512vnni() {
  constexpr unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, vnni = 1u << 11;
  return has_avx2() && has_bits(saved_state(), 0xe6) && has_bits(identify(7, 0).b, f | dq | bw | vl) && has_bits(identify(7, 0).c, vnni);
}

#elif defined(BORRADOR_ARM64)

bool has_dot_product() {
#if defined(__APPLE__)
  return true;  // every Apple processor that runs macOS
#elif defined(__linux__)
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#elif defined(_WIN32)
  return IsProcessorFeaturePresent(43);  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which older headers lack
#else
  return false;
#endif
}

#endif

}  // namespace

bool is_available(Isa isa) {
  switch (isa) {
    case Isa::portable: return true;
#ifdef BORRADOR_X86
    case Isa::avx2: return has_avx2();
    case Isa::avx512vnni: return has_avx512vnni();
#endif
#ifdef BORRADOR_AVXVNNI
    case Isa::avxvnni: return has_avxvnni();
#endif
#ifdef BORRADOR_ARM64
    case Isa::neon: return has_dot_product();
#endif
    default: return false;
  }
}

// Found out once: in a virtual machine each CPUID is a trap, and all of them together take a fraction of a millisecond.
Isa best_isa() {
  static const Isa best = [] {
    Isa found = Isa::portable;
    for (const Isa isa : all_isas)
      if (is_available(isa)) found = isa;
    return found;
  }();
  return best;
}

namespace {

// Cores a cgroup quota allows (version 2, then version 1), or `fallback` where there is none.
size_t quota_cores(size_t fallback) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return fallback;
  } else {
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period) || quota.starts_with("-") || period <= 0) return fallback;
  }
  double microseconds = 0;
  try {
    microseconds = std::stod(quota);
  } catch (const std::exception&) {
    return fallback;
  }
  return microseconds > 0 ? std::max<size_t>(1, size_t(microseconds / period)) : fallback;
}

}  // namespace

size_t usable_cores() {
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
#endif
  return std::min(cores, quota_cores(cores));
}

}  // namespace borrador
