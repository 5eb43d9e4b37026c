#include "short_head.h"

#include <algorithm>
#include <stdexcept>

namespace borrador {

ShortHead::ShortHead(const Matrix& head, size_t capacity)
    : head_(head), capacity_(capacity), matrix_{head.format, capacity, head.columns}, rows_(matrix_.bytes(), PageBuffer::Pages::huge), held_(head.rows) {
  matrix_.rows = 0;
  matrix_.data = rows_.data();
}

void ShortHead::add(std::span<const int32_t> tokens) {
  if (tokens_.size() + tokens.size() > capacity_) throw std::length_error("more tokens than a short head has room for");
  std::vector<bool> held = held_;
  for (const int32_t token : tokens) {
    if (token < 0 || size_t(token) >= head_.rows || held[size_t(token)]) throw std::invalid_argument("a token that the head lacks, or twice");
    held[size_t(token)] = true;
  }
  tokens_.reserve(tokens_.size() + tokens.size());
  for (const int32_t token : tokens) {
    copy_row(head_, size_t(token), matrix_, tokens_.size());
    tokens_.push_back(token);
    largest_token_ = std::max(largest_token_, token);
  }
  matrix_.rows = tokens_.size();
  held_ = std::move(held);
}

}  // namespace borrador
