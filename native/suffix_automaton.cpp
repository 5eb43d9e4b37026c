#include "suffix_automaton.h"

#include <algorithm>
#include <stdexcept>

namespace borrador {
namespace {

constexpr size_t most_tokens = size_t{1} << 28;
constexpr size_t first_slots = 64;
constexpr float doubt = 1.2f;  // observations that what follows a shorter suffix counts for, times the match's length
constexpr float negligible = 0.02f;

size_t hash(int32_t state, int32_t token) {
  const uint64_t key = uint64_t(uint32_t(state)) << 32 | uint32_t(token);
  const uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
  return size_t(mixed ^ mixed >> 32);
}

}  // namespace

// A token that may be proposed: a child of a proposed one.
struct SuffixAutomaton::Branch {
  Candidate candidate;
  float path;
  int32_t parent;
  size_t number;  // in order of discovery, so that equal paths have an order

  bool operator<(const Branch& other) const {
    return path != other.path ? path < other.path : number > other.number;
  }
};

SuffixAutomaton::SuffixAutomaton(size_t capacity) : capacity_(capacity), states_(1), table_(first_slots, none) {
  if (capacity >= most_tokens) throw std::invalid_argument("a suffix automaton takes fewer than 2^28 tokens");
}

void SuffixAutomaton::add(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    if (length_ < capacity_)
      extend(token);
    else
      match_ = follow(match_, token);
  }
}

// A state may have been split since the match was made, and a match may have grown too long. Its string is a suffix of the
// state's in both cases.
SuffixMatch SuffixAutomaton::settled(SuffixMatch match) const {
  match.length = std::min(match.length, longest_match);
  while (match.state != 0) {
    const int32_t link = states_[size_t(match.state)].link;
    if (match.length > states_[size_t(link)].length) break;
    match.state = link;
  }
  return match;
}

SuffixMatch SuffixAutomaton::follow(SuffixMatch match, int32_t token) const {
  match = settled(match);
  for (;;) {
    const int32_t edge = find(match.state, token);
    if (edge != none) return settled({edges_[size_t(edge)].target, match.length + 1});
    if (match.state == 0) return {};
    match.state = states_[size_t(match.state)].link;
    match.length = states_[size_t(match.state)].length;
  }
}

uint32_t SuffixAutomaton::count(SuffixMatch match, int32_t token) const {
  const int32_t edge = find(settled(match).state, token);
  return edge == none ? 0 : edges_[size_t(edge)].count;
}

size_t SuffixAutomaton::slot_of(int32_t state, int32_t token) const {
  const size_t mask = table_.size() - 1;
  size_t slot = hash(state, token) & mask;
  for (; table_[slot] != none; slot = (slot + 1) & mask) {
    const Edge& edge = edges_[size_t(table_[slot])];
    if (edge.state == state && edge.token == token) break;
  }
  return slot;
}

int32_t SuffixAutomaton::find(int32_t state, int32_t token) const {
  ++steps_;
  return table_[slot_of(state, token)];
}

void SuffixAutomaton::grow_table() {
  table_.assign(table_.size() * 2, none);
  for (size_t edge = 0; edge < edges_.size(); ++edge)
    table_[slot_of(edges_[edge].state, edges_[edge].token)] = int32_t(edge);
}

int32_t SuffixAutomaton::add_edge(int32_t state, int32_t token, int32_t target, uint32_t count) {
  if ((edges_.size() + 1) * 2 > table_.size()) grow_table();
  const auto edge = int32_t(edges_.size());
  table_[slot_of(state, token)] = edge;
  edges_.push_back({state, token, target, states_[size_t(state)].first_edge, count});
  states_[size_t(state)].first_edge = edge;
  ++steps_;
  return edge;
}

// The edge was seen once more, now; it passes those that were seen as often.
void SuffixAutomaton::count_up(int32_t state, int32_t edge) {
  State& from = states_[size_t(state)];
  ++from.followed;
  const uint32_t count = ++edges_[size_t(edge)].count;
  auto& best = from.best;
  size_t rank = 0;
  while (rank + 1 < ranks && best[rank] != edge) ++rank;
  if (best[rank] != edge && best[rank] != none && edges_[size_t(best[rank])].count > count) return;
  for (; rank > 0 && (best[rank - 1] == none || edges_[size_t(best[rank - 1])].count <= count); --rank)
    best[rank] = best[rank - 1];
  best[rank] = edge;
}

// Counts what followed every recurring suffix, then moves the match.
void SuffixAutomaton::advance(int32_t token) {
  SuffixMatch found = settled(match_);
  int32_t edge = find(found.state, token);
  while (edge == none && found.state != 0) {
    found.state = states_[size_t(found.state)].link;
    found.length = states_[size_t(found.state)].length;
    edge = find(found.state, token);
  }
  if (edge == none) {
    match_ = {};
    return;
  }
  match_ = {edges_[size_t(edge)].target, found.length + 1};
  for (int32_t state = found.state; state != none; state = states_[size_t(state)].link)
    count_up(state, find(state, token));
}

void SuffixAutomaton::extend(int32_t token) {
  advance(token);
  const auto now = int32_t(states_.size());
  states_.push_back({});
  states_.back().length = uint32_t(++length_);
  int32_t state = last_;
  for (; state != none && find(state, token) == none; state = states_[size_t(state)].link)
    count_up(state, add_edge(state, token, now, 0));
  last_ = now;
  if (state == none) {
    states_[size_t(now)].link = 0;
    return;
  }
  const int32_t target = edges_[size_t(find(state, token))].target;
  const size_t length = states_[size_t(state)].length + size_t{1};
  if (states_[size_t(target)].length == length) {
    states_[size_t(now)].link = target;
    return;
  }
  const int32_t shorter = clone(target, length);
  for (; state != none; state = states_[size_t(state)].link) {
    const int32_t edge = find(state, token);
    if (edge == none || edges_[size_t(edge)].target != target) break;
    edges_[size_t(edge)].target = shorter;
  }
  states_[size_t(target)].link = states_[size_t(now)].link = shorter;
}

// Splits off the strings of at most `length` tokens: so far they were followed by the same tokens as the longer ones.
int32_t SuffixAutomaton::clone(int32_t state, size_t length) {
  const auto copy = int32_t(states_.size());
  states_.push_back(states_[size_t(state)]);
  states_.back().length = uint32_t(length);
  states_.back().first_edge = none;
  const auto best = states_[size_t(state)].best;
  for (int32_t edge = states_[size_t(state)].first_edge; edge != none; edge = edges_[size_t(edge)].next) {
    const Edge from = edges_[size_t(edge)];
    const int32_t to = add_edge(copy, from.token, from.target, from.count);
    for (size_t rank = 0; rank < ranks; ++rank)
      if (best[rank] == edge) states_[size_t(copy)].best[rank] = to;
  }
  return copy;
}

// The most frequent tokens after the match and its suffixes, likeliest first. A match of m tokens that was followed f times
// has the weight f / (f + doubt / m), and its suffixes share the rest in the same way.
std::vector<SuffixAutomaton::Candidate> SuffixAutomaton::candidates(SuffixMatch match, size_t shortest) const {
  std::vector<Candidate> found;
  float weight = 1.0f;
  while (match.length >= shortest && match.length > 0 && weight > negligible) {
    const State& state = states_[size_t(match.state)];
    const float prior = doubt / float(match.length), total = float(state.followed) + prior;
    for (const int32_t index : state.best) {
      if (index == none) break;
      const Edge& edge = edges_[size_t(index)];
      if (edge.token < 0) continue;
      const float share = weight * float(edge.count) / total;
      auto same = std::find_if(found.begin(), found.end(), [&](const Candidate& c) { return c.token == edge.token; });
      if (same != found.end())
        same->probability += share;
      else
        found.push_back({edge.token, {edge.target, match.length + 1}, share});
    }
    weight *= prior / total;
    match.state = state.link;
    match.length = match.state == none ? 0 : states_[size_t(match.state)].length;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.probability > b.probability; });
  return found;
}

SuffixDraft SuffixAutomaton::propose(SuffixMatch match, const SuffixWanted& wanted) const {
  SuffixDraft draft;
  std::vector<Branch> open;
  size_t number = 0;
  const auto branch_out = [&](SuffixMatch from, float path, int32_t parent) {
    for (const Candidate& candidate : candidates(settled(from), wanted.shortest)) {
      const float whole = path * candidate.probability;
      if (candidate.probability < wanted.least || whole < wanted.least_path) break;
      open.push_back({candidate, whole, parent, number++});
      std::push_heap(open.begin(), open.end());
      if (wanted.chain) break;
    }
  };
  if (wanted.budget > 0) branch_out(match, 1.0f, -1);
  while (!open.empty() && draft.tokens.size() < wanted.budget) {
    std::pop_heap(open.begin(), open.end());
    const Branch branch = open.back();
    open.pop_back();
    const auto index = int32_t(draft.tokens.size());
    draft.tokens.push_back(branch.candidate.token);
    draft.parents.push_back(branch.parent);
    draft.confidence.push_back(branch.candidate.probability);
    branch_out(branch.candidate.match, branch.path, index);
  }
  return draft;
}

}  // namespace borrador
