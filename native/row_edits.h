// What changes single logits of a row before it is shaped: bias, forbidden tokens, penalties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace borrador {

// The same for all rows of a request.
struct Edits {
  std::vector<std::int32_t> biased;    // token ids
  std::vector<float> biases;           // one per biased token
  std::vector<std::uint32_t> allowed;  // a bit per token, the lowest of the first word for token 0, tokens beyond are
                                       // forbidden; empty allows all
  float repetition = 1.0f;             // positive logits of tokens in the window are divided by it, others multiplied
  float presence = 0.0f;               // taken off every token in the window
  float frequency = 0.0f;              // taken off for each time it occurs there
};

// What differs from row to row. Ids outside the vocabulary are passed over.
struct RowConditions {
  std::span<const std::int32_t> window;  // tokens before the row that the penalties count, in any order
  std::span<const std::int32_t> barred;  // tokens that must not follow
  const std::uint32_t* mask = nullptr;   // a bit for every token as in `allowed`; null allows all
};

// The edited row: `logits` itself where nothing is to be done, else a copy that is valid until the thread's next call.
// Bias comes first, forbidden tokens become minus infinity, then the penalties act (Keskar et al., arXiv 1909.05858, with
// llama.cpp's treatment of negative logits).
const float* edit(const float* logits, std::size_t size, const Edits& edits, const RowConditions& conditions);

}  // namespace borrador
