// The parts of the Python module, each bound in a file of its own.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "kernels/kernels.h"

namespace borrador {

void bind_caches(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_sampler(nanobind::module_& m);
void bind_successors(nanobind::module_& m);
void bind_suffixes(nanobind::module_& m);

// The instruction set of that name, or the machine's best where it is empty.
// Throws std::invalid_argument where this machine does not have it.
Isa parse_isa(const std::string& name);

}  // namespace borrador
