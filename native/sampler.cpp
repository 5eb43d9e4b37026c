#include "sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

namespace borrador {
namespace {

constexpr std::size_t kLanes = 16;   // independent running values, so that the compiler can use vector registers
constexpr std::size_t kBlock = 512;  // logits per block in the scans that skip whole blocks
constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

float block_max(const float* values, std::size_t size) {
    float lanes[kLanes];
    std::fill(lanes, lanes + kLanes, kNever);
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes)
        for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
    for (; i < size; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
    return *std::max_element(lanes, lanes + kLanes);
}

// exp(x) for x <= 0 within 2 units in the last place, 0 below -87; branch-free so that it vectorises.
inline float exp_nonpositive(float x) {
    const float clamped = x > -87.0f ? x : -87.0f;
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const float whole = (clamped * 1.44269504f + magic) - magic;
    const float r = (clamped - whole * 0.693145752f) - whole * 1.42860677e-6f;  // ln 2 in two parts
    float p = 1.98756915e-4f;
    p = p * r + 1.39819994e-3f;
    p = p * r + 8.33345205e-3f;
    p = p * r + 4.16657962e-2f;
    p = p * r + 1.66666654e-1f;
    p = p * r + 5.00000012e-1f;
    p = p * r * r + r + 1.0f;
    const auto scale = std::bit_cast<float>((static_cast<std::int32_t>(whole) + 127) << 23);
    const std::int32_t in_range = -static_cast<std::int32_t>(x > -87.0f);
    return std::bit_cast<float>(std::bit_cast<std::int32_t>(p * scale) & in_range);
}

// A float at most 7 % above 2^x and never below it (up to rounding): a chord of each doubling, for bounds only.
inline float exp2_bound(float x) {
    const float clamped = x > -126.0f ? (x < 126.0f ? x : 126.0f) : -126.0f;
    return std::bit_cast<float>(static_cast<std::int32_t>((clamped + 127.0f) * 8388608.0f));
}

double sum(const float* values, std::size_t size) {
    double lanes[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (std::size_t j = 0; j < 4; ++j) lanes[j] += static_cast<double>(values[i + j]);
    for (; i < size; ++i) lanes[0] += static_cast<double>(values[i]);
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

std::uint64_t stream_state(std::uint64_t seed, std::uint64_t position) {
    return mix(mix(seed + kGolden) + position * kGolden);
}

std::uint64_t token_bits(std::uint64_t state, std::uint64_t token) { return mix(state + (token + 1) * kGolden); }

double to_uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

double gumbel(std::uint64_t bits) { return -std::log(-std::log(to_uniform(bits))); }

float checked_max(const float* logits, std::size_t size) {
    const float largest = block_max(logits, size);
    if (!std::isfinite(largest)) throw std::domain_error("the logits have no finite maximum");
    return largest;
}

// Orders candidate ids from most to least likely, ties by id.
struct MoreLikely {
    const float* logits;
    bool operator()(std::int32_t a, std::int32_t b) const {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    }
};

// Ids whose logit is at least `floor`, ascending.
std::vector<std::int32_t> at_least(const float* logits, std::size_t size, float floor) {
    std::vector<std::int32_t> ids;
    for (std::size_t start = 0; start < size; start += kBlock) {
        const std::size_t end = std::min(start + kBlock, size);
        if (!(block_max(logits + start, end - start) >= floor)) continue;
        for (std::size_t i = start; i < end; ++i)
            if (logits[i] >= floor) ids.push_back(static_cast<std::int32_t>(i));
    }
    return ids;
}

constexpr float kBinsPerNat = 16.0f;
constexpr std::size_t kDeepestBin = 32 * 16;

std::size_t depth_bin(float depth) {
    const float bin = depth * kBinsPerNat;
    return bin < static_cast<float>(kDeepestBin) ? static_cast<std::size_t>(bin) : kDeepestBin;
}

// The k most likely ids, most likely first. At least k logits reach the k-th largest of the small blocks' maxima, so only
// blocks that reach it are read twice.
std::vector<std::int32_t> most_likely(const float* logits, std::size_t size, std::size_t k) {
    constexpr std::size_t kSmall = 4 * kLanes;
    if (k == 0) return {};
    float floor = kLowest;
    std::vector<float> maxima((size + kSmall - 1) / kSmall);
    if (k < maxima.size()) {
        for (std::size_t b = 0; b < maxima.size(); ++b)
            maxima[b] = block_max(logits + b * kSmall, std::min(kSmall, size - b * kSmall));
        std::vector<float> ranked = maxima;
        const auto kth = ranked.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(ranked.begin(), kth, ranked.end(), std::greater<>{});
        floor = std::max(*kth, kLowest);
    } else {
        std::fill(maxima.begin(), maxima.end(), floor);
    }
    std::vector<std::int32_t> ids;
    for (std::size_t b = 0; b < maxima.size(); ++b) {
        if (maxima[b] < floor) continue;
        for (std::size_t i = b * kSmall; i < std::min(b * kSmall + kSmall, size); ++i)
            if (logits[i] >= floor) ids.push_back(static_cast<std::int32_t>(i));
    }
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(k, ids.size()));
    std::nth_element(ids.begin(), end, ids.end(), MoreLikely{logits});
    std::sort(ids.begin(), end, MoreLikely{logits});
    ids.erase(end, ids.end());
    return ids;
}

double weight_of_all(const float* logits, std::size_t size, float largest) {
    double total = 0.0;
    float weights[kBlock];
    for (std::size_t start = 0; start < size; start += kBlock) {
        const std::size_t count = std::min(kBlock, size - start);
        for (std::size_t i = 0; i < count; ++i) weights[i] = exp_nonpositive(logits[start + i] - largest);
        total += sum(weights, count);
    }
    return total;
}

// Cuts ids after the fewest most likely ones whose mass reaches `wanted`; false where all of them do not. A histogram of
// the mass by depth below the largest logit finds the bin in which the cut falls, so that only that bin is sorted.
bool cut_at_mass(const float* logits, float largest, double wanted, std::vector<std::int32_t>& ids) {
    double mass[kDeepestBin + 1] = {};
    for (const std::int32_t id : ids)
        mass[depth_bin(largest - logits[id])] += static_cast<double>(exp_nonpositive(logits[id] - largest));
    double above = 0.0;
    std::size_t bin = 0;
    for (; bin <= kDeepestBin && above + mass[bin] < wanted; ++bin) above += mass[bin];
    if (bin > kDeepestBin) return false;
    const auto bin_of = [&](std::int32_t id) { return depth_bin(largest - logits[id]); };
    const auto edge = std::partition(ids.begin(), ids.end(), [&](std::int32_t id) { return bin_of(id) < bin; });
    const auto end = std::partition(edge, ids.end(), [&](std::int32_t id) { return bin_of(id) == bin; });
    std::sort(edge, end, MoreLikely{logits});
    auto cut = edge;
    for (; cut != end && above < wanted; ++cut) above += static_cast<double>(exp_nonpositive(logits[*cut] - largest));
    ids.erase(cut, ids.end());
    return true;
}

// The fewest most likely ids that reach top_p of the whole vocabulary; nearly always they are not deep below the first.
std::vector<std::int32_t> nucleus(const float* logits, std::size_t size, float largest, double top_p) {
    const double wanted = top_p * weight_of_all(logits, size, largest);
    std::vector<std::int32_t> ids = at_least(logits, size, largest - 8.0f);
    if (cut_at_mass(logits, largest, wanted, ids)) return ids;
    ids = at_least(logits, size, kLowest);
    cut_at_mass(logits, largest, wanted, ids);
    return ids;
}

// Cuts `ids`, most likely first, after the fewest that reach `share` of their mass.
void cut_at_share(const float* logits, float largest, double share, std::vector<std::int32_t>& ids) {
    std::vector<double> mass_up_to(ids.size());
    double total = 0.0;
    for (std::size_t i = 0; i < ids.size(); ++i)
        mass_up_to[i] = total += static_cast<double>(exp_nonpositive(logits[ids[i]] - largest));
    const auto cut = std::lower_bound(mass_up_to.begin(), mass_up_to.end(), share * total) - mass_up_to.begin();
    if (static_cast<std::size_t>(cut) < ids.size()) ids.resize(static_cast<std::size_t>(cut) + 1);
}

// The ids that top-k, top-p and min-p leave, ascending. Only called when one of them is at work.
std::vector<std::int32_t> candidates(const float* logits, std::size_t size, float largest, const Shape& shape) {
    const bool ranked = shape.top_k > 0 && shape.top_k < size;
    std::vector<std::int32_t> ids;
    if (ranked) {
        ids = most_likely(logits, size, shape.top_k);
        if (shape.top_p < 1.0) cut_at_share(logits, largest, shape.top_p, ids);
    } else if (shape.top_p < 1.0) {
        ids = nucleus(logits, size, largest, shape.top_p);
    }
    if (shape.min_p > 0.0) {
        const float floor = largest + static_cast<float>(std::log(shape.min_p));
        if (!ranked && shape.top_p >= 1.0) return at_least(logits, size, floor);
        std::erase_if(ids, [&](std::int32_t id) { return logits[id] < floor; });
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

bool narrows(const Shape& shape, std::size_t size) {
    return (shape.top_k > 0 && shape.top_k < size) || shape.top_p < 1.0 || shape.min_p > 0.0;
}

double usable_temperature(const Shape& shape) { return std::max(shape.temperature, 1e-6); }

// The best score so far in the race, and who holds it.
struct Leader {
    double score = -std::numeric_limits<double>::infinity();
    std::int32_t id = -1;

    void challenge(double candidate, std::int32_t candidate_id) {
        if (candidate > score || (candidate == score && candidate_id < id)) *this = {candidate, candidate_id};
    }
};

// Token i wins only if -log(u) < exp(x - best), and 1 - u <= -log(u): one hash and one multiplication rule out
// nearly every token before any logarithm is taken.
std::int32_t race_over_all(const float* logits, std::size_t size, float largest, double temperature,
                           std::uint64_t state) {
    const auto scale = static_cast<float>(1.4426950408889634 / temperature);
    const auto score = [&](std::size_t i) {
        const double x = (static_cast<double>(logits[i]) - static_cast<double>(largest)) / temperature;
        return x + gumbel(token_bits(state, i));
    };
    const auto first = static_cast<std::size_t>(std::find(logits, logits + size, largest) - logits);
    Leader leader{score(first), static_cast<std::int32_t>(first)};
    float best_log2 = static_cast<float>(leader.score * 1.4426950408889634);
    for (std::size_t i = 0; i < size; ++i) {
        const float bound = exp2_bound((logits[i] - largest) * scale - best_log2) * 1.001f;
        const auto above = static_cast<float>(static_cast<std::int32_t>(~token_bits(state, i) >> 40)) * 0x1p-24f;
        if (!(above <= bound)) continue;
        if (!(logits[i] > kNever)) continue;
        leader.challenge(score(i), static_cast<std::int32_t>(i));
        best_log2 = static_cast<float>(leader.score * 1.4426950408889634);
    }
    return leader.id;
}

std::int32_t race_over(const float* logits, const std::vector<std::int32_t>& ids, float largest, double temperature,
                       std::uint64_t state) {
    Leader leader;
    for (const std::int32_t id : ids) {
        const double x = (static_cast<double>(logits[id]) - static_cast<double>(largest)) / temperature;
        leader.challenge(x + gumbel(token_bits(state, static_cast<std::uint64_t>(id))), id);
    }
    return leader.id;
}

}  // namespace

std::int32_t argmax(const float* logits, std::size_t size) {
    float best = kNever;
    std::size_t best_start = 0;
    for (std::size_t start = 0; start < size; start += kBlock) {
        const float value = block_max(logits + start, std::min(kBlock, size - start));
        if (value > best) {
            best = value;
            best_start = start;
        }
    }
    if (!std::isfinite(best)) throw std::domain_error("the logits have no finite maximum");
    const float* const end = logits + std::min(best_start + kBlock, size);
    return static_cast<std::int32_t>(std::find(logits + best_start, end, best) - logits);
}

Ranked top_k(const float* logits, std::size_t size, std::size_t k) {
    Ranked ranked{most_likely(logits, size, std::min(k, size)), {}};
    ranked.logits.reserve(ranked.ids.size());
    for (const std::int32_t id : ranked.ids) ranked.logits.push_back(logits[id]);
    return ranked;
}

Distribution shape(const float* logits, std::size_t size, const Shape& shape) {
    const float largest = checked_max(logits, size);
    const double temperature = usable_temperature(shape);
    const auto scale = static_cast<float>(1.0 / temperature);
    Distribution result;
    if (narrows(shape, size)) {
        result.ids = candidates(logits, size, largest, shape);
        result.probabilities.resize(result.ids.size());
        for (std::size_t i = 0; i < result.ids.size(); ++i)
            result.probabilities[i] = exp_nonpositive((logits[result.ids[i]] - largest) * scale);
    } else {
        result.probabilities.resize(size);
        for (std::size_t i = 0; i < size; ++i)
            result.probabilities[i] = exp_nonpositive((logits[i] - largest) * scale);
    }
    const auto inverse = static_cast<float>(1.0 / sum(result.probabilities.data(), result.probabilities.size()));
    for (float& probability : result.probabilities) probability *= inverse;
    return result;
}

double uniform(std::uint64_t seed, std::uint64_t position, std::int32_t token) {
    return to_uniform(token_bits(stream_state(seed, position), static_cast<std::uint64_t>(token)));
}

std::int32_t pick_seeded(const float* logits, std::size_t size, const Shape& shape, std::uint64_t seed,
                         std::uint64_t position) {
    const float largest = checked_max(logits, size);
    const std::uint64_t state = stream_state(seed, position);
    const double temperature = usable_temperature(shape);
    if (!narrows(shape, size)) return race_over_all(logits, size, largest, temperature, state);
    return race_over(logits, candidates(logits, size, largest, shape), largest, temperature, state);
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
