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

struct Candidate {
    double distance;  // from the centre
    float weight;
    std::int32_t id;

    std::size_t bin() const {
        const double bin = distance * kBinsPerNat;
        return bin < static_cast<double>(kLastBin) ? static_cast<std::size_t>(bin) : kLastBin;
    }
    bool operator<(const Candidate& other) const {
        return distance != other.distance ? distance < other.distance : id < other.id;
    }
};

std::vector<Candidate> measure(const Row& row, double centre, const TokenIds& ids) {
    std::vector<float> weights;
    weigh(row, ids, weights);
    std::vector<Candidate> candidates(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const double x = static_cast<double>(row.logits[ids[i]]) - static_cast<double>(row.largest);
        candidates[i] = {std::fabs(x - centre), weights[i], ids[i]};
    }
    return candidates;
}

// Cuts ids after the fewest closest ones whose mass reaches `wanted`; false where all of them do not. A histogram of the
// mass by distance finds the bin in which the cut falls, so that only that bin is sorted.
bool cut(const Row& row, double centre, double wanted, TokenIds& ids) {
    std::vector<Candidate> candidates = measure(row, centre, ids);
    double mass[kLastBin + 1] = {};
    for (const Candidate& candidate : candidates) mass[candidate.bin()] += static_cast<double>(candidate.weight);
    double inside = 0.0;
    std::size_t bin = 0;
    for (; bin <= kLastBin && inside + mass[bin] < wanted; ++bin) inside += mass[bin];
    if (bin > kLastBin) return false;
    const auto edge =
        std::partition(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.bin() < bin; });
    const auto end = std::partition(edge, candidates.end(), [&](const Candidate& c) { return c.bin() == bin; });
    std::sort(edge, end);
    auto last = edge;
    for (; last != end && inside < wanted; ++last) inside += static_cast<double>(last->weight);
    ids.resize(static_cast<std::size_t>(last - candidates.begin()));
    std::transform(candidates.begin(), last, ids.begin(), [](const Candidate& c) { return c.id; });
    return true;
}

}  // namespace

Row view(const float* logits, std::size_t size, const KernelTable& kernels) {
    thread_local std::vector<float> maxima;
    const std::size_t blocks = (size + vocabulary_block - 1) / vocabulary_block;
    if (maxima.size() < blocks) maxima.resize(blocks);
    kernels.block_maxima(logits, size, maxima.data());
    const auto largest = std::max_element(maxima.begin(), maxima.begin() + static_cast<std::ptrdiff_t>(blocks));
    if (blocks == 0 || !std::isfinite(*largest)) throw std::domain_error("the logits have no finite maximum");
    return {logits, size, maxima.data(), *largest, kernels};
}

std::int32_t likeliest(const Row& row) {
    const auto block = static_cast<std::size_t>(std::find(row.maxima, row.maxima + row.size, row.largest) - row.maxima);
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
    const std::size_t blocks = (row.size + vocabulary_block - 1) / vocabulary_block;
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
    for (const double wider : {0.0, 6.0}) {
        TokenIds ids = at_least(row, row.largest + static_cast<float>(centre - radius - wider));
        if (cut(row, centre, wanted, ids)) return ids;
    }
    return closest(row, centre, wanted, at_least(row, kLowest));
}

}  // namespace borrador
