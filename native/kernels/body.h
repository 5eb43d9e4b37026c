// The kernels, written once over a set S of sixteen-lane operations; each instruction set's file defines its S and
// instantiates them with kernel_table<S>(). Everything here and in the parts has internal linkage: the files are compiled
// with different flags, and the linker must not merge their instances.
#pragma once
#include "attention_steps.h"
#include "best_steps.h"
#include "kernels.h"
#include "matmul.h"
#include "row_steps.h"
#include "vocabulary_steps.h"

namespace borrador {
namespace {

template <class S>
int32_t integer_peak(size_t rounds) {
  typename S::I32 sums[peak_dots];
  for (auto& sum : sums) sum = S::zero_i32();
  const auto codes = S::set_u8(1);
  const int8_t values[4 * peak_dots] = {};
  const int8_t* volatile place = values;  // read anew each round, or the products would be taken out of the loop
  for (size_t round = 0; round < rounds; ++round) {
    const int8_t* now = place;
    for (size_t i = 0; i < peak_dots; ++i) sums[i] = S::template dot4<false>(sums[i], codes, now + 4 * i);
  }
  for (size_t i = 1; i < peak_dots; ++i) sums[0] = S::add_i32(sums[0], sums[i]);
  return S::sum(sums[0]);
}

template <class S>
constexpr KernelTable kernel_table(const char* name) {
  return {.name = name,
          .tile_rows = size_t(S::tile_rows),
          .matmul = matmul<S>,
          .quantise = quantise<S>,
          .rms_norm = rms_norm<S>,
          .add = add<S>,
          .add_scaled = add_scaled<S>,
          .silu_mul = silu_mul<S>,
          .gelu_mul = gelu_mul<S>,
          .soft_cap = soft_cap<S>,
          .dots = dots<S>,
          .scale_dots = scale_dots<S>,
          .to_int16 = to_int16<S>,
          .weigh_chunk = weigh_chunk<S>,
          .fold_chunk = fold_chunk<S>,
          .largest = largest<S>,
          .exp_sum = exp_sum<S>,
          .block_maxima = block_maxima<S>,
          .weigh = weigh<S>,
          .scale_by = scale_by<S>,
          .next_contenders = next_contenders<S>,
          .integer_peak = integer_peak<S>};
}

}  // namespace
}  // namespace borrador
