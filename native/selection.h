// Finding the likely tokens of a row of logits without sorting it. Ties always go to the lowest token id, not-a-numbers
// are never found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace borrador {

using TokenIds = std::vector<std::int32_t>;

// A row and the largest logit of every 64, so that most of it need not be read again. Both must outlive the view, and
// `maxima` is valid until the thread's next `view`.
struct Row {
  const float* logits;
  std::size_t size;
  const float* maxima;
  float largest;
  const KernelTable& kernels;
};

// Throws std::domain_error where no logit is finite, or one is plus infinity.
Row view(const float* logits, std::size_t size, const KernelTable& kernels);

std::int32_t likeliest(const Row& row);

// Ids whose logit is at least `floor`, ascending.
TokenIds at_least(const Row& row, float floor);

// The k largest logits' ids, largest first; fewer where fewer are finite.
TokenIds likeliest(const Row& row, std::size_t k);

// Sums of e^x and x e^x, x = logit - row.largest: over all of the vocabulary, or over some ids.
Mass mass_of(const Row& row);
Mass mass_of(const Row& row, const TokenIds& ids);

// The fewest ids whose x = logit - row.largest is closest to `centre` <= 0 and whose mass reaches `wanted`, in any order:
// of all ids, or of those given. All of them where rounding lets none reach it.
TokenIds closest(const Row& row, double centre, double wanted);
TokenIds closest(const Row& row, double centre, double wanted, TokenIds&& ids);

}  // namespace borrador
