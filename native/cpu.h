// What this machine offers: instruction sets and cores.
#pragma once
#include <cstddef>

namespace borrador {

// In ascending order of preference.
enum class Isa { portable, neon, avx2, avxvnni, avx512vnni };
inline constexpr Isa all_isas[] = {Isa::portable, Isa::neon, Isa::avx2, Isa::avxvnni, Isa::avx512vnni};

// True where this build holds the instruction set and this processor and its operating system offer it.
bool is_available(Isa isa);

// The most preferable instruction set that is available.
Isa best_isa();

// Cores this process may use: its CPU affinity, further limited by a cgroup CPU quota. At least 1.
size_t usable_cores();

}  // namespace borrador
