// Some rows of an LM head, packed on their own, so that a pass can compute the logits of these tokens and of no others.
// Source: FR-Spec (Zhao et al., arXiv 2502.14856).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory.h"
#include "weights.h"

namespace borrador {

class ShortHead {
 public:
  // Room for `capacity` rows of `head`, which must stay where it is.
  ShortHead(const Matrix& head, size_t capacity);

  // Takes up the rows of these tokens. Not while a pass reads them. Throws std::invalid_argument for a token that the head
  // lacks or that is here already, and std::length_error where there is no room; nothing is taken up then.
  void add(std::span<const int32_t> tokens);

  // Row i is that of token tokens()[i].
  const Matrix& matrix() const { return matrix_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  bool belongs_to(const Matrix& head) const { return &head == &head_; }
  size_t capacity() const { return capacity_; }
  int32_t largest_token() const { return largest_token_; }

 private:
  const Matrix& head_;
  size_t capacity_;
  Matrix matrix_;
  PageBuffer rows_;
  std::vector<int32_t> tokens_;
  std::vector<bool> held_;
  int32_t largest_token_ = -1;
};

}  // namespace borrador
