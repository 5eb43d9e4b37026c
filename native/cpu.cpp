#include "cpu.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#endif

namespace borrador {

#if defined(BORRADOR_X86) && defined(_MSC_VER)
Isa best_isa() {
  int leaf1[4], leaf7[4];
  __cpuidex(leaf1, 1, 0);
  __cpuidex(leaf7, 7, 0);
  const bool saved = (leaf1[2] >> 27) & 1;
  const unsigned long long state = saved ? _xgetbv(0) : 0;
  const bool avx2 = (state & 6) == 6 && ((leaf1[2] >> 12) & 1) && ((leaf1[2] >> 29) & 1) && ((leaf7[1] >> 5) & 1);
  const bool foundation = ((leaf7[1] >> 16) & 1) && ((leaf7[1] >> 17) & 1) && ((leaf7[1] >> 30) & 1) && ((leaf7[1] >> 31) & 1);
  if (avx2 && (state & 0xe6) == 0xe6 && foundation && ((leaf7[2] >> 11) & 1)) return Isa::avx512vnni;
  return avx2 ? Isa::avx2 : Isa::portable;
}
#elif defined(BORRADOR_X86)
Isa best_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return Isa::avx512vnni;
  return avx2 ? Isa::avx2 : Isa::portable;
}
#else
Isa best_isa() { return Isa::portable; }
#endif

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
