#include "row_edits.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace borrador {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::size_t kWordBits = 32;

// Copies a row; tokens without their bit in both sets of words become minus infinity.
void copy_allowed(const float* logits, std::size_t size, const std::vector<std::uint32_t>& allowed,
                  const std::uint32_t* mask, float* out) {
  const auto allowed_word = [&](std::size_t word) { return word < allowed.size() ? allowed[word] : 0u; };
  for (std::size_t begin = 0, word = 0; begin < size; begin += kWordBits, ++word) {
    const std::uint32_t bits = (allowed.empty() ? ~0u : allowed_word(word)) & (mask ? mask[word] : ~0u);
    const std::size_t count = std::min(kWordBits, size - begin);
    if (bits == 0) {
      std::fill_n(out + begin, count, kNever);
    } else if (bits == ~0u) {
      std::memcpy(out + begin, logits + begin, count * sizeof(float));
    } else {
      for (std::size_t i = 0; i < count; ++i) out[begin + i] = bits >> i & 1 ? logits[begin + i] : kNever;
    }
  }
}

void penalise(float* row, std::size_t size, const Edits& edits, std::span<const std::int32_t> window) {
  thread_local std::vector<std::uint32_t> counts;  // all 0 between calls
  if (counts.size() < size) counts.resize(size);
  const auto exists = [&](std::int32_t token) { return token >= 0 && static_cast<std::size_t>(token) < size; };
  for (const std::int32_t token : window)
    if (exists(token)) ++counts[static_cast<std::size_t>(token)];
  for (const std::int32_t token : window) {
    if (!exists(token) || counts[static_cast<std::size_t>(token)] == 0) continue;
    float& logit = row[token];
    logit = logit > 0.0f ? logit / edits.repetition : logit * edits.repetition;
    logit -= static_cast<float>(counts[static_cast<std::size_t>(token)]) * edits.frequency + edits.presence;
    counts[static_cast<std::size_t>(token)] = 0;
  }
}

}  // namespace

const float* edit(const float* logits, std::size_t size, const Edits& edits, const RowConditions& conditions) {
  const bool masked = !edits.allowed.empty() || conditions.mask;
  if (!masked && edits.biased.empty() && conditions.barred.empty() && conditions.window.empty()) return logits;
  thread_local std::vector<float> row;
  if (row.size() < size) row.resize(size);
  if (masked) {
    copy_allowed(logits, size, edits.allowed, conditions.mask, row.data());
  } else {
    std::memcpy(row.data(), logits, size * sizeof(float));
  }
  for (std::size_t i = 0; i < edits.biased.size(); ++i)
    if (static_cast<std::size_t>(edits.biased[i]) < size) row[edits.biased[i]] += edits.biases[i];
  for (const std::int32_t token : conditions.barred)
    if (static_cast<std::size_t>(token) < size) row[token] = kNever;
  if (!conditions.window.empty()) penalise(row.data(), size, edits, conditions.window);
  return row.data();
}

}  // namespace borrador
