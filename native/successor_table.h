// What followed the last tokens of a text, or might have: tails of one to three tokens and their likely successors. It
// serves trees of tokens that a model held likely when it last met the same words (Token Recycling: Luo et al.,
// arXiv 2408.08696).
//
// For each tail the table holds what a model last held likely behind it, or else what last followed it in a text. The
// last `most` tails that were learnt or copied are known, and of those before them as many more at most: a full half of
// the table becomes the older one, and what that held is forgotten.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace borrador {

constexpr size_t longest_tail = 3;
constexpr size_t most_successors = 8;

// The last tokens of a text: `tokens` ends with them, and is zero before them.
struct Tail {
  std::array<int32_t, longest_tail> tokens{};
  uint32_t length = 0;

  Tail then(int32_t token) const;
  // Its last tokens alone, at most as many as it has.
  Tail last(size_t count) const;
  bool operator==(const Tail&) const = default;
};

struct Successor {
  int32_t token;
  double probability;
};

// Tokens that may follow a tail, each of them once.
struct Following {
  std::array<Successor, longest_tail * most_successors> tokens;
  size_t count = 0;

  void add(int32_t token, double probability);
  const Successor* begin() const { return tokens.data(); }
  const Successor* end() const { return tokens.data() + count; }
};

// Proposed tokens, each with its parent's index (-1 at the top) and its probability in the table, by descending product
// of the probabilities along their paths; a parent comes before its children.
struct SuccessorTree {
  std::vector<int32_t> tokens, parents;
  std::vector<double> confidence;
};

// What a pass gave of a draft: the token and the parent of each of its rows but the first, whose tail is the context's;
// and of every row the model's likeliest tokens, most likely first, with their logits. A row without any has -1 first.
struct TaughtRows {
  std::span<const int32_t> tokens, parents;
  const int32_t* ids;
  const float* logits;
  size_t columns;
};

class SuccessorTable {
 public:
  // `most` is at least 1 and below 2^30.
  explicit SuccessorTable(size_t most);

  // How many tails are held, those twice that were learnt again.
  size_t size() const { return recent_.entries.size() + older_.entries.size(); }
  void clear();

  // The tokens at the end of a context of this length that `read` needs to see.
  size_t unread(size_t length) const;
  // Learns what followed what in the part of a context that was not read before; what a model held likely behind the
  // same tokens is not replaced. `end` are the last tokens of the context, `unread(length)` of them or more. Returns its
  // tail.
  Tail read(std::span<const int32_t> end, size_t length);
  // Learns what the model holds likely behind a context and behind the tokens of a draft, in place of what was known. A
  // parent comes before its children.
  void learn(const Tail& context, const TaughtRows& rows);

  // Tokens that may follow, below 1 in sum. A longer tail is believed first, and shorter ones share what it leaves
  // (interpolation as in n-gram models).
  Following following(const Tail& tail) const;
  // The tree of at most `budget` tokens that are likeliest to be right.
  SuccessorTree grow(const Tail& tail, size_t budget) const;
  // At most `count` tokens, each the likeliest behind the one before it.
  std::vector<int32_t> follow(Tail tail, size_t count) const;

 private:
  static constexpr int32_t none = -1;

  // What is known of a tail: tokens with their probabilities, or one token that was copied where the count is 0.
  struct alignas(64) Entry {
    Tail tail;
    uint32_t count = 0;
    std::array<int32_t, most_successors> tokens{};
    std::array<double, most_successors> probabilities{};
  };
  static_assert(sizeof(Entry) == 128);

  struct Half {
    std::vector<Entry> entries;
    std::vector<int32_t> slots;  // indices of entries, open addressing; a power of two, at most half full

    size_t slot_of(const Tail& tail) const;
    const Entry* find(const Tail& tail) const;
    Entry& at(const Tail& tail);
    void widen();
  };
  struct Branch;

  const Entry* find(const Tail& tail) const;
  void make_room();
  void copy(const Tail& tail, int32_t token);
  void put(const Tail& tail, const Entry& entry);
  static Entry likely(std::span<const int32_t> ids, std::span<const float> logits);

  size_t most_, read_ = 0;
  Half recent_, older_;
};

}  // namespace borrador
