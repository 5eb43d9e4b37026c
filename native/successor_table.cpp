#include "successor_table.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace borrador {
namespace {

constexpr size_t most_tails = size_t{1} << 30;
constexpr size_t first_slots = 64;
constexpr double least_survival = 0.02;  // of a proposed token
const double unlikely = std::log(100.0);  // a successor so much less likely than the first is not worth a row

// By the tail's length, how much a tail is believed; the rest is left to the shorter ones. Fitted to answers of three
// models to prompts of seven kinds, so that the beliefs are close to how often they come true.
constexpr std::array<double, longest_tail + 1> seen{0.0, 0.5, 0.6, 0.5};
constexpr std::array<double, longest_tail + 1> copied{0.0, 0.2, 0.4, 0.5};

size_t hash(const Tail& tail) {
  uint64_t mixed = tail.length;
  for (const int32_t token : tail.tokens) {
    mixed = (mixed ^ uint32_t(token)) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
  }
  return size_t(mixed);
}

}  // namespace

// A token that may be proposed: a child of a proposed one.
struct SuccessorTable::Branch {
  Tail tail;  // before the token
  double survival, probability;
  int32_t token, parent;
  size_t number;  // in order of discovery, so that equals have an order

  bool operator<(const Branch& other) const {
    return survival != other.survival ? survival < other.survival : number > other.number;
  }
};

Tail Tail::then(int32_t token) const {
  return {{tokens[1], tokens[2], token}, std::min(length + 1, uint32_t(longest_tail))};
}

Tail Tail::last(size_t count) const {
  Tail tail = *this;
  for (size_t i = 0; i + count < longest_tail; ++i) tail.tokens[i] = 0;
  tail.length = uint32_t(count);
  return tail;
}

void Following::add(int32_t token, double probability) {
  const auto last = tokens.begin() + ptrdiff_t(count);
  const auto same = std::find_if(tokens.begin(), last, [&](const Successor& it) { return it.token == token; });
  if (same != last)
    same->probability += probability;
  else
    tokens[count++] = {token, probability};
}

SuccessorTable::SuccessorTable(size_t most) : most_(most) {
  if (most == 0 || most >= most_tails) throw std::invalid_argument("a successor table holds from 1 to 2^30 - 1 tails");
}

void SuccessorTable::clear() { recent_ = older_ = {}; }

size_t SuccessorTable::Half::slot_of(const Tail& tail) const {
  const size_t mask = slots.size() - 1;
  size_t slot = hash(tail) & mask;
  while (slots[slot] != none && !(entries[size_t(slots[slot])].tail == tail)) slot = (slot + 1) & mask;
  return slot;
}

const SuccessorTable::Entry* SuccessorTable::Half::find(const Tail& tail) const {
  if (entries.empty()) return nullptr;
  const int32_t index = slots[slot_of(tail)];
  return index == none ? nullptr : &entries[size_t(index)];
}

SuccessorTable::Entry& SuccessorTable::Half::at(const Tail& tail) {
  if ((entries.size() + 1) * 2 > slots.size()) widen();
  int32_t& index = slots[slot_of(tail)];
  if (index == none) {
    entries.emplace_back().tail = tail;
    index = int32_t(entries.size() - 1);
  }
  return entries[size_t(index)];
}

void SuccessorTable::Half::widen() {
  slots.assign(std::max(first_slots, slots.size() * 2), none);
  for (size_t index = 0; index < entries.size(); ++index) slots[slot_of(entries[index].tail)] = int32_t(index);
}

const SuccessorTable::Entry* SuccessorTable::find(const Tail& tail) const {
  const Entry* entry = recent_.find(tail);
  return entry ? entry : older_.find(tail);
}

void SuccessorTable::make_room() {
  if (recent_.entries.size() >= most_) older_ = std::exchange(recent_, {});
}

void SuccessorTable::copy(const Tail& tail, int32_t token) {
  make_room();
  for (size_t length = tail.length; length > 0; --length) {
    const Tail key = tail.last(length);
    const Entry* known = find(key);
    if (known && known->count > 0) continue;
    recent_.at(key).tokens[0] = token;
  }
}

void SuccessorTable::put(const Tail& tail, const Entry& entry) {
  make_room();
  for (size_t length = tail.length; length > 0; --length) {
    Entry& known = recent_.at(tail.last(length));
    known = entry;
    known.tail = tail.last(length);
  }
}

size_t SuccessorTable::unread(size_t length) const {
  const size_t known = std::min(read_, length);
  return length - known + std::min(known, longest_tail);
}

Tail SuccessorTable::read(std::span<const int32_t> end, size_t length) {
  Tail tail;
  size_t place = length - end.size();
  for (const int32_t token : end) {
    if (place++ >= read_ && tail.length > 0) copy(tail, token);
    tail = tail.then(token);
  }
  read_ = length;
  return tail;
}

// Those of a row's best tokens that are worth a row, with their probabilities among these.
SuccessorTable::Entry SuccessorTable::likely(std::span<const int32_t> ids, std::span<const float> logits) {
  Entry entry;
  const double first = logits[0];
  double total = 0.0;
  for (size_t i = 0; i < std::min(ids.size(), most_successors); ++i) {
    if (ids[i] < 0 || !(double(logits[i]) >= first - unlikely)) break;
    entry.tokens[i] = ids[i];
    total += entry.probabilities[i] = std::exp(double(logits[i]) - first);
    ++entry.count;
  }
  for (size_t i = 0; i < entry.count; ++i) entry.probabilities[i] /= total;
  return entry;
}

void SuccessorTable::learn(const Tail& context, const TaughtRows& rows) {
  std::vector<Tail> tails{context};
  tails.reserve(rows.tokens.size() + 1);
  for (size_t i = 0; i < rows.tokens.size(); ++i)
    tails.push_back(tails[size_t(rows.parents[i] + 1)].then(rows.tokens[i]));
  for (size_t row = 0; row < tails.size(); ++row) {
    const size_t begin = row * rows.columns;
    if (rows.ids[begin] < 0 || !std::isfinite(rows.logits[begin])) continue;
    put(tails[row], likely({rows.ids + begin, rows.columns}, {rows.logits + begin, rows.columns}));
  }
}

Following SuccessorTable::following(const Tail& tail) const {
  Following found;
  double left = 1.0;
  for (size_t length = tail.length; length > 0; --length) {
    const Entry* entry = find(tail.last(length));
    if (!entry) continue;
    const double share = left * (entry->count ? seen : copied)[length];
    if (entry->count == 0) found.add(entry->tokens[0], share);
    for (size_t i = 0; i < entry->count; ++i) found.add(entry->tokens[i], share * entry->probabilities[i]);
    left -= share;
  }
  return found;
}

SuccessorTree SuccessorTable::grow(const Tail& tail, size_t budget) const {
  SuccessorTree tree;
  std::vector<Branch> open;
  size_t number = 0;
  const auto branch_out = [&](const Tail& from, double survival, int32_t parent) {
    for (const Successor& next : following(from)) {
      const double whole = survival * next.probability;
      if (!(whole > least_survival)) continue;
      open.push_back({from, whole, next.probability, next.token, parent, number++});
      std::push_heap(open.begin(), open.end());
    }
  };
  if (budget > 0) branch_out(tail, 1.0, -1);
  while (!open.empty()) {
    std::pop_heap(open.begin(), open.end());
    const Branch best = open.back();
    open.pop_back();
    tree.tokens.push_back(best.token);
    tree.parents.push_back(best.parent);
    tree.confidence.push_back(best.probability);
    if (tree.tokens.size() == budget) break;
    branch_out(best.tail.then(best.token), best.survival, int32_t(tree.tokens.size() - 1));
  }
  return tree;
}

std::vector<int32_t> SuccessorTable::follow(Tail tail, size_t count) const {
  std::vector<int32_t> tokens;
  while (tokens.size() < count) {
    const Following next = following(tail);
    if (next.count == 0) break;
    const auto likelier = [](const Successor& a, const Successor& b) { return a.probability < b.probability; };
    tokens.push_back(std::max_element(next.begin(), next.end(), likelier)->token);
    tail = tail.then(tokens.back());
  }
  return tokens;
}

}  // namespace borrador
