// Part of Transformer: the last norm and the LM head.
#include <algorithm>
#include <cstring>

#include "transformer.h"

namespace borrador {

namespace {

constexpr size_t piece_bytes = 131072;  // weights a thread takes at a time

}  // namespace

// Norm and LM head of the rows of this slice whose logits are wanted.
void Transformer::output_block(const PassRows& rows, size_t begin) {
  const auto in_slice = [&](size_t at) { return size_t(rows.logit_rows[at]) >= begin && size_t(rows.logit_rows[at]) < begin + slice_rows_; };
  for (size_t first = 0, count = 0; first < rows.logit_rows.size(); first += std::max<size_t>(count, 1)) {
    for (count = 0; first + count < rows.logit_rows.size() && count < slice_limit && in_slice(first + count);) ++count;
    if (count == 0) continue;
    finish_rows(rows, begin, first, first + count);
    if (output_matrix().quantised()) quantise_rows(hidden_.data() + first * shape_.width, shape_.width, count);
    if (rows.best.count) write_best(first, count);
    else write_logits(first, count);
  }
}

// Hidden states of logit rows [from, to). Several logits may be asked of one row, so it stays as it is.
void Transformer::finish_rows(const PassRows& rows, size_t begin, size_t from, size_t to) {
  const size_t width = shape_.width, stride = (width + lanes - 1) / lanes * lanes;
  for (size_t at = from; at < to; ++at) {
    const size_t row = size_t(rows.logit_rows[at]) - begin;
    float* hidden = hidden_.data() + at * width;
    std::memcpy(hidden, delta_.as<float>() + row * stride, width * sizeof(float));
    kernels_.add(finish_delta(hidden), state_.as<float>() + row * width, width);
    kernels_.rms_norm(hidden, output_norm_.data(), width, shape_.norm_epsilon, hidden);
  }
}

void Transformer::write_logits(size_t first, size_t count) {
  const Job output[] = {{&output_matrix(), logits_.data() + first * logits_stride(), count}};
  multiply(output, hidden_.data() + first * shape_.width);
  if (shape_.logit_soft_cap == 0) return;
  threads_->pool.for_range(count, 1, [&](size_t from, size_t to, size_t) {
    for (size_t row = first + from; row < first + to; ++row)
      kernels_.soft_cap(logits_.data() + row * logits_stride(), shape_.vocabulary, shape_.logit_soft_cap);
  });
}

// The same logits, block by block, each forgotten once its best are known.
void Transformer::write_best(size_t first, size_t count) {
  const Matrix& head = output_matrix();
  const size_t strip_bytes = head.bytes() / head.strips(), block_bytes = strip_bytes * BestTokens::block_strips;
  const uint8_t* input = input_of(head, hidden_.data() + first * shape_.width, 0);
  best_.begin(count);
  const size_t fair = best_.blocks() / (threads() * 4);
  const size_t grain = std::clamp<size_t>(piece_bytes / block_bytes, 1, std::max<size_t>(1, fair));
  threads_->pool.for_range(best_.blocks(), grain, [&](size_t from, size_t to, size_t thread) {
    float* logits = best_.room(thread);
    for (size_t block = from; block < to; ++block) {
      const size_t tokens = best_.tokens_in(block), strips = (tokens + lanes - 1) / lanes;
      kernels_.matmul(head.format, head.data + block * block_bytes, head.blocks_per_strip(), 0, strips, input, count, logits,
                      BestTokens::block_tokens);
      for (size_t row = 0; row < count; ++row) {
        float* of_row = logits + row * BestTokens::block_tokens;
        if (shape_.logit_soft_cap != 0) kernels_.soft_cap(of_row, tokens, shape_.logit_soft_cap);
        best_.take(kernels_, thread, row, block, of_row);
      }
    }
  });
  best_.finish(kernels_, first);
}

}  // namespace borrador
