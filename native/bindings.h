// Parts of the Python module that are bound in files of their own.
#pragma once
#include <nanobind/nanobind.h>

namespace borrador {

void bind_caches(nanobind::module_& m);
void bind_successors(nanobind::module_& m);

}  // namespace borrador
