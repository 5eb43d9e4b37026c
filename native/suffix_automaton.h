// Which tokens followed which before: a suffix automaton over token ids (Blumer et al. 1985), grown one token at a time,
// with counts. It serves drafts copied from text (Oliaro et al., SuffixDecoding, arXiv 2411.04975; Hu et al., SAM
// Decoding, arXiv 2411.10666).
//
// A state stands for all strings that end at the same places of the text: the suffixes of its longest string that are
// longer than its link's longest. An edge's count says how often one of these strings was followed by the edge's token.
// Counts are exact for strings of at most `longest_match` tokens, which are the only ones looked at; each token changes
// the counts of at most that many edges. The strings of a state have equal counts, so a state keeps its four most frequent
// edges in order, of equal ones the one seen last first, and never has to search for them.
//
// n tokens make at most 2n states and 3n edges, and all edges share one hash table. A token takes amortised constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace borrador {

constexpr size_t longest_match = 64;

// A suffix of some context as a place in an automaton: the state of its last `length` tokens, the most that occur in the
// automaton's text, at most `longest_match`. It stays valid while the automaton grows, though then a longer suffix may
// occur that it has missed.
struct SuffixMatch {
  int32_t state = 0;
  size_t length = 0;
};

// Proposed tokens, each with its parent's index (-1 at the top) and its probability by the counts; a parent comes before
// its children, and what is likelier as a whole path comes first.
struct SuffixDraft {
  std::vector<int32_t> tokens, parents;
  std::vector<float> confidence;
};

// What to propose: at most `budget` tokens; none whose probability is below `least`, or whose whole path's is below
// `least_path`; no sibling where `chain`; none after a match shorter than `shortest`.
struct SuffixWanted {
  size_t budget;
  float least, least_path;
  bool chain;
  size_t shortest;
};

class SuffixAutomaton {
 public:
  // Takes at most `capacity` tokens, below 2^28.
  explicit SuffixAutomaton(size_t capacity);

  // Adds tokens to the text's end. Those beyond the capacity are not added; the text then stays as it is, and `match`
  // still follows them. Negative tokens separate texts, and are never proposed.
  void add(std::span<const int32_t> tokens);

  size_t length() const { return length_; }
  size_t capacity() const { return capacity_; }
  size_t states() const { return states_.size(); }
  size_t edges() const { return edges_.size(); }
  // Edges looked at so far to add tokens and to follow them.
  uint64_t steps() const { return steps_; }

  // The longest suffix of the added tokens that also occurs in the text before its end.
  SuffixMatch match() const { return settled(match_); }
  // The longest match of a context that is one token longer than the one `match` belongs to.
  SuffixMatch follow(SuffixMatch match, int32_t token) const;
  // As often as the match's strings were followed by something, and by this token.
  uint32_t followed(SuffixMatch match) const { return states_[size_t(settled(match).state)].followed; }
  uint32_t count(SuffixMatch match, int32_t token) const;

  // What followed the match, and shorter suffixes of it where that was seldom.
  SuffixDraft propose(SuffixMatch match, const SuffixWanted& wanted) const;

 private:
  static constexpr int32_t none = -1;
  static constexpr size_t ranks = 4;

  struct State {
    int32_t link = none, first_edge = none;
    uint32_t length = 0, followed = 0;
    std::array<int32_t, ranks> best{none, none, none, none};  // edges
  };
  struct Edge {
    int32_t state, token, target, next;
    uint32_t count;
  };
  struct Candidate {
    int32_t token;
    SuffixMatch match;
    float probability;
  };
  struct Branch;

  SuffixMatch settled(SuffixMatch match) const;
  size_t slot_of(int32_t state, int32_t token) const;
  int32_t find(int32_t state, int32_t token) const;
  int32_t add_edge(int32_t state, int32_t token, int32_t target, uint32_t count);
  void count_up(int32_t state, int32_t edge);
  void grow_table();
  void advance(int32_t token);
  void extend(int32_t token);
  int32_t clone(int32_t state, size_t length);
  std::vector<Candidate> candidates(SuffixMatch match, size_t shortest) const;

  size_t capacity_, length_ = 0;
  int32_t last_ = 0;
  SuffixMatch match_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<int32_t> table_;  // edges by state and token, open addressing; a power of two, at most half full
  mutable uint64_t steps_ = 0;
};

}  // namespace borrador
