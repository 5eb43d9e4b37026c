// Prints what the sampler makes of random rows of logits, which must be equal on every instruction set and machine.
//
//   choices NAME    one line for each row and shape: both choices, and a hash of the bits of the distribution
#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string_view>
#include <vector>

#include "cpu.h"
#include "kernels/kernels.h"
#include "noise.h"
#include "sampler.h"

namespace borrador {
namespace {

// About the logits of a language model, with ties, with some that are missing and some that are not numbers.
std::vector<float> random_row(std::uint64_t number, std::size_t size) {
  const NoiseKey key = noise_key(7, number);
  std::vector<float> row(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto token = static_cast<std::uint32_t>(i);
    row[i] = static_cast<float>(static_cast<std::int32_t>(gumbel(key, token) * 1024.0)) / 512.0f;
    if (i % 101 == 3) row[i] = -std::numeric_limits<float>::infinity();
    if (i % 103 == 5) row[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return row;
}

std::uint64_t hash(const Distribution& law) {
  std::uint64_t state = 14695981039346656037u;  // FNV-1a over 32-bit words
  const auto add = [&](std::uint32_t word) { state = (state ^ word) * 1099511628211u; };
  for (const std::int32_t id : law.ids) add(static_cast<std::uint32_t>(id));
  for (const float probability : law.probabilities) add(std::bit_cast<std::uint32_t>(probability));
  return state;
}

void print(const KernelTable& kernels) {
  const std::int32_t window[] = {1, 2, 3, 2, 40, 41};
  const std::int32_t barred[] = {0, 9};
  Edits penalties{{3, 70}, {2.5f, -1.0f}, {}, 1.2f, 0.3f, 0.1f};
  const Shape shapes[] = {
    {1.0, 0, 1.0, 1.0, 0.0, {}, &kernels},           {0.7, 0, 1.0, 0.9, 0.0, {}, &kernels},
    {1.3, 0, 1.0, 0.9995, 0.0, {}, &kernels},        {0.8, 40, 1.0, 0.95, 0.05, {}, &kernels},
    {1.0, 0, 0.9, 1.0, 0.001, penalties, &kernels},  {0.9, 0, 0.3, 0.8, 0.0, penalties, &kernels},
  };
  for (const std::size_t size : {5u, 1000u, 32003u}) {
    for (std::uint64_t number = 0; number < 6; ++number) {
      const std::vector<float> row = random_row(number, size);
      for (const Shape& how : shapes) {
        const bool edited = !how.edits.biased.empty();
        const RowConditions conditions{edited ? std::span<const std::int32_t>(window) : std::span<const std::int32_t>(),
                                       edited ? std::span<const std::int32_t>(barred) : std::span<const std::int32_t>()};
        std::printf("%zu %d %d %016llx\n", size, pick_likeliest(row.data(), size, how, conditions),
                    pick_seeded(row.data(), size, how, conditions, 11, number),
                    static_cast<unsigned long long>(hash(shape(row.data(), size, how, conditions))));
      }
    }
  }
}

}  // namespace
}  // namespace borrador

int main(int count, char** words) {
  for (const borrador::Isa isa : borrador::all_isas) {
    const borrador::KernelTable& kernels = borrador::kernels_for(isa);
    if (count == 2 && borrador::is_available(isa) && std::string_view(words[1]) == kernels.name) {
      borrador::print(kernels);
      return 0;
    }
  }
  std::fprintf(stderr, "choices NAME, an instruction set that logits --list names\n");
  return 2;
}
