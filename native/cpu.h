// What this machine offers: instruction sets and cores.
#pragma once
#include <cstddef>

namespace borrador {

enum class Isa { portable, avx2, avx512vnni };

// The best instruction set of this processor that this build holds.
Isa best_isa();

// Cores this process may use: its CPU affinity, further limited by a cgroup CPU quota. At least 1.
size_t usable_cores();

}  // namespace borrador
