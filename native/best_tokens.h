// The most likely tokens of rows of logits that threads compute in blocks of the vocabulary, so that a whole row never
// stands in memory. Results do not depend on who computes which block, nor on the other rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace borrador {

// What is wanted of every row in place of its logits.
struct BestWanted {
  size_t count = 0;         // tokens, at most BestTokens::most; 0: all logits are wanted instead
  size_t within = 0;        // only tokens below this id, at least one and at most the vocabulary
  bool normaliser = false;  // and ln(sum of e^logit) over these tokens
};

// The tokens of a block of logits: those listed, or `count` from `first` on where there is no list.
struct BlockTokens {
  size_t count;
  int32_t first;
  const int32_t* list;
  int32_t at(size_t index) const { return list ? list[index] : first + int32_t(index); }
};

class BestTokens {
 public:
  static constexpr size_t most = 64;
  // Strips of a block. Never by threads or rows: sums of exponentials are added up block by block.
  static constexpr size_t block_strips = 8;
  static constexpr size_t block_tokens = block_strips * lanes;

  static size_t blocks_of(size_t tokens) { return (tokens + block_tokens - 1) / block_tokens; }
  // The tokens of one of these blocks, all but the last of them whole.
  static BlockTokens tokens_of(size_t block, size_t tokens, const int32_t* list = nullptr) {
    const size_t begin = block * block_tokens, left = tokens - begin;
    return {left < block_tokens ? left : block_tokens, int32_t(begin), list ? list + begin : nullptr};
  }

  explicit BestTokens(size_t threads) : shares_(threads) {}

  // Makes room for the results of a pass.
  void begin_pass(const BestWanted& wanted, size_t rows);

  // Rows of the pass that are computed together: begin, every block at most once for every row, finish. A row's results
  // are those of the blocks that it has, whatever the other rows have.
  void begin(size_t rows, size_t blocks);
  // Room for a block of all rows' logits, block_tokens of them a row; a thread's own.
  float* room(size_t thread) { return shares_[thread].logits.data(); }
  void take(const KernelTable& kernels, size_t thread, size_t row, size_t block, const BlockTokens& tokens, const float* logits);
  // Writes the results, the first row's as those of row `first` of the pass.
  void finish(const KernelTable& kernels, size_t first);

  // Results: of each row `count` ids and logits, best first, ties by id. Ids are -1 and logits minus infinity behind the
  // logits above minus infinity where they are fewer, and throughout a row that has none or one of plus infinity. A logit
  // that is no number is never chosen.
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<float>& logits() const { return logits_; }
  // One a row; not-a-number where no token is chosen. Empty where they were not asked for.
  const std::vector<float>& normalisers() const { return normalisers_; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
    bool beats(const Candidate& other) const { return logit != other.logit ? logit > other.logit : id < other.id; }
  };
  // What a thread has seen. Apart from the others' in memory, as each block is compared with it.
  struct alignas(64) Share {
    std::vector<float> logits;
    std::vector<Candidate> best;  // of each row `count`, those held first, best first
    std::vector<size_t> held;     // of each row
  };

  void offer(Share& share, size_t row, Candidate candidate);
  void write_best(size_t row, size_t result);
  float normaliser(const KernelTable& kernels, size_t row);

  BestWanted wanted_;
  size_t rows_ = 0, blocks_ = 0;
  std::vector<Share> shares_;
  std::vector<float> maxima_, sums_;  // by row and block: the largest logit, and the sum of e^(logit - largest)
  std::vector<uint8_t> taken_;         // by row and block: the row has it
  std::vector<int32_t> ids_;
  std::vector<float> logits_, normalisers_;
};

}  // namespace borrador
