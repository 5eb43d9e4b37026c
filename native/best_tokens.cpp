#include "best_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "elementary.h"

namespace borrador {

namespace {

constexpr float never = -std::numeric_limits<float>::infinity();

}  // namespace

void BestTokens::begin_pass(const BestWanted& wanted, size_t rows) {
  wanted_ = wanted;
  ids_.resize(rows * wanted.count);
  logits_.resize(rows * wanted.count);
  normalisers_.resize(wanted.normaliser ? rows : 0);
}

void BestTokens::begin(size_t rows, size_t blocks) {
  rows_ = rows;
  blocks_ = blocks;
  for (Share& share : shares_) {
    share.logits.resize(std::max(share.logits.size(), rows * block_tokens));
    share.best.resize(std::max(share.best.size(), rows * wanted_.count));
    share.held.assign(rows, 0);
  }
  if (wanted_.normaliser) {
    maxima_.resize(rows * blocks_);
    sums_.resize(rows * blocks_);
    taken_.assign(rows * blocks_, 0);
  }
}

void BestTokens::take(const KernelTable& kernels, size_t thread, size_t row, size_t block, const BlockTokens& tokens, const float* logits) {
  const float largest = kernels.largest(logits, tokens.count);
  if (wanted_.normaliser) {
    taken_[row * blocks_ + block] = 1;
    maxima_[row * blocks_ + block] = largest;
    sums_[row * blocks_ + block] = std::isfinite(largest) ? kernels.exp_sum(logits, nullptr, tokens.count, largest) : 0.0f;
  }
  Share& share = shares_[thread];
  const bool full = share.held[row] == wanted_.count;
  if (full && largest < share.best[row * wanted_.count + wanted_.count - 1].logit) return;
  for (size_t i = 0; i < tokens.count; ++i)
    if (logits[i] > never) offer(share, row, {logits[i], tokens.at(i)});
}

// Keeps the best `count` candidates of a row in order.
void BestTokens::offer(Share& share, size_t row, Candidate candidate) {
  Candidate* best = share.best.data() + row * wanted_.count;
  size_t& held = share.held[row];
  if (held == wanted_.count) {
    if (!candidate.beats(best[held - 1])) return;
  } else {
    ++held;
  }
  size_t place = held - 1;
  for (; place > 0 && candidate.beats(best[place - 1]); --place) best[place] = best[place - 1];
  best[place] = candidate;
}

void BestTokens::finish(const KernelTable& kernels, size_t first) {
  for (size_t row = 0; row < rows_; ++row) {
    write_best(row, first + row);
    if (wanted_.normaliser) normalisers_[first + row] = normaliser(kernels, row);
  }
}

void BestTokens::write_best(size_t row, size_t result) {
  Share& all = shares_.front();
  for (size_t thread = 1; thread < shares_.size(); ++thread)
    for (size_t i = 0; i < shares_[thread].held[row]; ++i) offer(all, row, shares_[thread].best[row * wanted_.count + i]);
  const Candidate* best = all.best.data() + row * wanted_.count;
  const size_t held = all.held[row] && std::isfinite(best->logit) ? all.held[row] : 0;
  for (size_t i = 0; i < wanted_.count; ++i) {
    ids_[result * wanted_.count + i] = i < held ? best[i].id : -1;
    logits_[result * wanted_.count + i] = i < held ? best[i].logit : never;
  }
}

// From the blocks that the row has, one behind the other: what other rows have must not matter.
float BestTokens::normaliser(const KernelTable& kernels, size_t row) {
  float *maxima = maxima_.data() + row * blocks_, *sums = sums_.data() + row * blocks_;
  size_t blocks = 0;
  for (size_t block = 0; block < blocks_; ++block) {
    if (!taken_[row * blocks_ + block]) continue;
    maxima[blocks] = maxima[block];
    sums[blocks++] = sums[block];
  }
  const float largest = kernels.largest(maxima, blocks);
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  const float sum = kernels.exp_sum(maxima, sums, blocks, largest);
  return float(double(largest) + same_log(double(sum)));
}

}  // namespace borrador
