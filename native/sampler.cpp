#include "sampler.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "cpu.h"
#include "elementary.h"
#include "noise.h"
#include "selection.h"

namespace borrador {
namespace {

constexpr std::size_t kBlock = 512;
constexpr double kLog2E = 1.4426950408889634;

double sum(const float* values, std::size_t size) {
  double lanes[4] = {0.0, 0.0, 0.0, 0.0};
  std::size_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (std::size_t j = 0; j < 4; ++j) lanes[j] += static_cast<double>(values[i + j]);
  for (; i < size; ++i) lanes[0] += static_cast<double>(values[i]);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

const KernelTable& best_kernels() {
  static const KernelTable& kernels = kernels_for(best_isa());
  return kernels;
}

double usable_temperature(const Shape& shape) { return std::max(shape.temperature, 1e-6); }

// What the steps before the temperature leave of a row.
struct Remainder {
  bool all;      // nothing was dropped
  TokenIds ids;  // in any order, unless all are left
};

float largest_of(const Row& row, const Remainder& left) {
  if (left.all) return row.largest;
  float largest = row.logits[left.ids.front()];
  for (const std::int32_t id : left.ids) largest = std::max(largest, row.logits[id]);
  return largest;
}

// Those whose mass is a share of what is left, the closest to a centre first.
void keep_share(const Row& row, double share, bool typical, Remainder& left) {
  const Mass mass = left.all ? mass_of(row) : mass_of(row, left.ids);
  const double centre = typical ? mass.moment / mass.total : 0.0, wanted = share * mass.total;
  left.ids = left.all ? closest(row, centre, wanted) : closest(row, centre, wanted, std::move(left.ids));
  left.all = false;
}

Remainder narrow(const Row& row, const Shape& shape) {
  Remainder left{true, {}};
  if (shape.top_k > 0 && shape.top_k < row.size) left = {false, likeliest(row, shape.top_k)};
  // -log p is the log of the total less x, so it is as far from its mean as x is from its own.
  if (shape.typical_p < 1.0) keep_share(row, shape.typical_p, true, left);
  if (shape.top_p < 1.0) keep_share(row, shape.top_p, false, left);
  if (shape.min_p > 0.0) {
    const float floor = largest_of(row, left) + static_cast<float>(same_log(shape.min_p));
    if (left.all) {
      left = {false, at_least(row, floor)};
    } else {
      std::erase_if(left.ids, [&](std::int32_t id) { return row.logits[id] < floor; });
    }
  }
  return left;
}

Row edited(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions) {
  return view(edit(logits, size, shape.edits, conditions), size, shape.kernels ? *shape.kernels : best_kernels());
}

// The race for the best score at one position.
class Race {
 public:
  Race(const Row& row, float largest, double temperature, const NoiseKey& key)
      : row_(row), key_(key), largest_(largest), temperature_(temperature),
        scale_(static_cast<float>(kLog2E / temperature)) {}

  // The likeliest comes first: it leaves others the least chance.
  void enter(const TokenIds& ids) {
    const auto holds_largest = [&](std::int32_t id) { return row_.logits[id] == largest_; };
    enter(*std::find_if(ids.begin(), ids.end(), holds_largest));
    for (const std::int32_t id : ids)
      if (may_win(id)) enter(id);
  }

  void enter_all() {
    enter(likeliest(row_));
    std::uint32_t found = 0;
    for (std::size_t i = 0;; i += lanes) {
      i = row_.kernels.next_contenders(row_.logits, i, row_.size, key_, {largest_, scale_, best_log2()}, &found);
      if (i >= row_.size) return;
      for (; found; found &= found - 1) {
        const std::size_t id = i + static_cast<std::size_t>(std::countr_zero(found));
        if (id < row_.size && row_.logits[id] >= std::numeric_limits<float>::lowest())
          enter(static_cast<std::int32_t>(id));
      }
    }
  }

  std::int32_t leader() const { return leader_; }

 private:
  void enter(std::int32_t id) {
    const double x = (static_cast<double>(row_.logits[id]) - static_cast<double>(largest_)) / temperature_;
    const double score = x + gumbel(key_, static_cast<std::uint32_t>(id));
    if (score > best_ || (score == best_ && id < leader_)) {
      best_ = score;
      leader_ = id;
    }
  }

  // As next_contenders, for one token.
  bool may_win(std::int32_t id) const {
    const float ahead = (row_.logits[id] - largest_) * scale_ - best_log2();
    const float in_range = std::min(std::max(ahead, -126.0f), 125.0f);
    const int power = static_cast<int>(in_range + 127.001f) + 1;  // of the next power of two, as floats store it
    const auto bound = std::bit_cast<float>(static_cast<std::uint32_t>(power) << 23);
    return static_cast<float>(~noise_word(key_, static_cast<std::uint32_t>(id)) >> 8) * 0x1p-24f <= bound;
  }

  float best_log2() const { return static_cast<float>(best_ * kLog2E); }

  const Row& row_;
  const NoiseKey& key_;
  float largest_;
  double temperature_;
  float scale_;  // powers of two per logit
  double best_ = -std::numeric_limits<double>::infinity();
  std::int32_t leader_ = -1;
};

}  // namespace

Ranked top_k(const float* logits, std::size_t size, std::size_t k) {
  Ranked ranked{likeliest(view(logits, size, best_kernels()), std::min(k, size)), {}};
  ranked.logits.reserve(ranked.ids.size());
  for (const std::int32_t id : ranked.ids) ranked.logits.push_back(logits[id]);
  return ranked;
}

double log_total(const float* logits, std::size_t size) {
  const Row row = view(logits, size, best_kernels());
  return static_cast<double>(row.largest) + same_log(mass_of(row).total);
}

Distribution shape(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions) {
  const Row row = edited(logits, size, shape, conditions);
  Remainder left = narrow(row, shape);
  const float largest = largest_of(row, left);
  const auto scale = static_cast<float>(1.0 / usable_temperature(shape));
  Distribution result{std::move(left.ids), {}};
  std::vector<float>& probabilities = result.probabilities;
  const float* weighed = row.logits;
  if (left.all) {
    probabilities.resize(size);
  } else {
    std::sort(result.ids.begin(), result.ids.end());
    for (const std::int32_t id : result.ids) probabilities.push_back(row.logits[id]);
    weighed = probabilities.data();
  }
  const Mass mass = row.kernels.weigh(weighed, probabilities.size(), largest, scale, probabilities.data());
  row.kernels.scale_by(probabilities.data(), probabilities.size(), static_cast<float>(1.0 / mass.total));
  return result;
}

std::int32_t pick_likeliest(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions) {
  const Row row = edited(logits, size, shape, conditions);
  if (shape.typical_p >= 1.0) return likeliest(row);  // no other step drops the most likely token
  const Remainder left = narrow(row, shape);
  return *std::min_element(left.ids.begin(), left.ids.end(), [&](std::int32_t a, std::int32_t b) {
      return row.logits[a] != row.logits[b] ? row.logits[a] > row.logits[b] : a < b;
  });
}

std::int32_t pick_seeded(const float* logits, std::size_t size, const Shape& shape, const RowConditions& conditions,
                         std::uint64_t seed, std::uint64_t position) {
  const Row row = edited(logits, size, shape, conditions);
  const NoiseKey key = noise_key(seed, position);
  const Remainder left = narrow(row, shape);
  Race race(row, largest_of(row, left), usable_temperature(shape), key);
  left.all ? race.enter_all() : race.enter(left.ids);
  return race.leader();
}

std::size_t pick(const float* weights, std::size_t size, double u) {
  std::vector<double> blocks;
  blocks.reserve(size / kBlock + 1);
  double total = 0.0;
  for (std::size_t start = 0; start < size; start += kBlock) {
    blocks.push_back(sum(weights + start, std::min(kBlock, size - start)));
    total += blocks.back();
  }
  if (!(total > 0.0)) throw std::domain_error("the weights sum to zero");
  const double goal = u * total;
  double running = 0.0;
  std::size_t block = 0;
  for (; block + 1 < blocks.size() && running + blocks[block] <= goal; ++block) running += blocks[block];
  for (std::size_t i = block * kBlock; i < size; ++i) {
    running += static_cast<double>(weights[i]);
    if (running > goal && weights[i] > 0.0f) return i;
  }
  std::size_t last = size - 1;  // rounding left the goal just out of reach
  while (!(weights[last] > 0.0f)) --last;
  return last;
}

}  // namespace borrador
