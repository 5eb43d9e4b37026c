#include "selection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

namespace borrador {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr double kBinsPerNat = 16.0;
constexpr std::size_t kLastBin = 32 * 16;

std::size_t blocks_of(std::size_t size) { return (size + vocabulary_block - 1) / vocabulary_block; }

// Reads the blocks that reach `floor`.
template <class Take>
void scan(const Row& row, float floor, Take&& take) {
  for (std::size_t begin = 0, block = 0; begin < row.size; begin += vocabulary_block, ++block) {
    if (!(row.maxima[block] >= floor)) continue;
    const std::size_t end = std::min(begin + vocabulary_block, row.size);
    for (std::size_t i = begin; i < end; ++i)
      if (row.logits[i] >= floor) take(static_cast<std::int32_t>(i));
  }
}

// e^(logit - largest) of some ids.
Mass weigh(const Row& row, const TokenIds& ids, std::vector<float>& weights) {
  weights.resize(ids.size());
  std::transform(ids.begin(), ids.end(), weights.begin(), [&](std::int32_t id) { return row.logits[id]; });
  return row.kernels.weigh(weights.data(), weights.size(), row.largest, 1.0f, weights.data());
}

double distance(const Row& row, double centre, std::int32_t id) {
  return std::fabs((static_cast<double>(row.logits[id]) - static_cast<double>(row.largest)) - centre);
}

std::uint16_t bin_of(double distance) {
  const double bin = distance * kBinsPerNat;
  return static_cast<std::uint16_t>(bin < static_cast<double>(kLastBin) ? bin : static_cast<double>(kLastBin));
}

struct Candidate {
  double distance;
  float weight;
  std::int32_t id;

  bool operator<(const Candidate& other) const {
    return distance != other.distance ? distance < other.distance : id < other.id;
  }
};

// Cuts ids after the fewest closest ones whose mass reaches `wanted`; false where all of them do not. A histogram of the
// mass by distance finds the bin in which the cut falls, so that only that bin is sorted.
bool cut(const Row& row, double centre, double wanted, TokenIds& ids) {
  std::vector<float> weights;
  weigh(row, ids, weights);
  std::vector<std::uint16_t> bins(ids.size());
  double mass[kLastBin + 1] = {};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    bins[i] = bin_of(distance(row, centre, ids[i]));
    mass[bins[i]] += static_cast<double>(weights[i]);
  }
  double inside = 0.0;
  std::size_t edge = 0;
  for (; edge <= kLastBin && inside + mass[edge] < wanted; ++edge) inside += mass[edge];
  if (edge > kLastBin) return false;
  std::vector<Candidate> candidates;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (bins[i] == edge) candidates.push_back({distance(row, centre, ids[i]), weights[i], ids[i]});
    if (bins[i] < edge) ids[kept++] = ids[i];
  }
  std::sort(candidates.begin(), candidates.end());
  for (auto next = candidates.begin(); next != candidates.end() && inside < wanted; ++next) {
    inside += static_cast<double>(next->weight);
    ids[kept++] = next->id;
  }
  ids.resize(kept);
  return true;
}

}  // namespace

Row view(const float* logits, std::size_t size, const KernelTable& kernels) {
  thread_local std::vector<float> maxima;
  const std::size_t blocks = blocks_of(size);
  if (maxima.size() < blocks) maxima.resize(blocks);
  kernels.block_maxima(logits, size, maxima.data());
  const auto largest = std::max_element(maxima.begin(), maxima.begin() + static_cast<std::ptrdiff_t>(blocks));
  if (blocks == 0 || !std::isfinite(*largest)) throw std::domain_error("the logits have no finite maximum");
  return {logits, size, maxima.data(), *largest, kernels};
}

std::int32_t likeliest(const Row& row) {
  const auto block = static_cast<std::size_t>(std::find(row.maxima, row.maxima + blocks_of(row.size), row.largest) - row.maxima);
  const float* const begin = row.logits + block * vocabulary_block;
  return static_cast<std::int32_t>(std::find(begin, row.logits + row.size, row.largest) - row.logits);
}

TokenIds at_least(const Row& row, float floor) {
  TokenIds ids;
  scan(row, floor, [&](std::int32_t id) { ids.push_back(id); });
  return ids;
}

// At least k logits reach the k-th largest of the blocks' maxima, so only blocks that reach it are read again.
TokenIds likeliest(const Row& row, std::size_t k) {
  if (k == 0) return {};
  const std::size_t blocks = blocks_of(row.size);
  float floor = kLowest;
  if (k < blocks) {
    std::vector<float> ranked(row.maxima, row.maxima + blocks);
    const auto kth = ranked.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ranked.begin(), kth, ranked.end(), std::greater<>{});
    floor = std::max(*kth, kLowest);
  }
  TokenIds ids = at_least(row, floor);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return row.logits[a] != row.logits[b] ? row.logits[a] > row.logits[b] : a < b;
  };
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(k, ids.size()));
  std::nth_element(ids.begin(), end, ids.end(), likelier);
  std::sort(ids.begin(), end, likelier);
  ids.erase(end, ids.end());
  return ids;
}

Mass mass_of(const Row& row) { return row.kernels.weigh(row.logits, row.size, row.largest, 1.0f, nullptr); }

Mass mass_of(const Row& row, const TokenIds& ids) {
  std::vector<float> weights;
  return weigh(row, ids, weights);
}

TokenIds closest(const Row& row, double centre, double wanted, TokenIds&& ids) {
  cut(row, centre, wanted, ids);
  return std::move(ids);
}

// Tokens within a radius are all those above a floor, if the radius reaches up to the largest logit.
TokenIds closest(const Row& row, double centre, double wanted) {
  const double radius = std::max(8.0, 2.0 - centre);
  for (const double wider : {0.0, 3.0, 6.0, 12.0}) {
    TokenIds ids = at_least(row, row.largest + static_cast<float>(centre - radius - wider));
    if (cut(row, centre, wanted, ids)) return ids;
  }
  return closest(row, centre, wanted, at_least(row, kLowest));
}

}  // namespace borrador
