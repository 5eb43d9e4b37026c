// Part of Transformer: the last norm and the LM head.
#include <algorithm>
#include <cstring>
#include <limits>

#include "transformer.h"

namespace borrador {

namespace {

constexpr size_t piece_bytes = 131072;  // weights a thread takes at a time

}  // namespace

// The matrices whose rows are the tokens' logits, with the tokens of each: the whole LM head, or short ones in its place.
void Transformer::choose_heads(const PassRows& rows) {
  heads_.clear();
  const size_t all = rows.best.count ? rows.best.within : shape_.vocabulary;
  if (rows.heads.empty()) heads_.push_back({&output_matrix(), nullptr, all, nullptr});
  for (const auto& [head, served] : rows.heads) {
    if (!head) heads_.push_back({&output_matrix(), nullptr, all, served.data()});
    else if (!head->tokens().empty()) heads_.push_back({&head->matrix(), head->tokens().data(), head->tokens().size(), served.data()});
  }
}

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
  if (heads_.front().rows) return write_some_logits(first, count);
  const Job output[] = {{&output_matrix(), logits_.data() + first * logits_stride(), count}};
  multiply(output, hidden_.data() + first * shape_.width);
  if (shape_.logit_soft_cap == 0) return;
  threads_->pool.for_range(count, 1, [&](size_t from, size_t to, size_t) {
    for (size_t row = first + from; row < first + to; ++row)
      kernels_.soft_cap(logits_.data() + row * logits_stride(), shape_.vocabulary, shape_.logit_soft_cap);
  });
}

// The logits of each row's tokens, and minus infinity for all others. Rows that a head does not serve are computed with the
// others: its weights are read anyway.
void Transformer::write_some_logits(size_t first, size_t count) {
  float* logits = logits_.data() + first * logits_stride();
  std::fill_n(logits, count * logits_stride(), -std::numeric_limits<float>::infinity());
  for (const Head& head : heads_) {
    if (!head.serves_any(first, count)) continue;
    const size_t stride = head.matrix->padded_rows();
    some_logits_.resize(std::max(some_logits_.size(), count * stride));
    const Job output[] = {{head.matrix, some_logits_.data(), count}};
    multiply(output, hidden_.data() + first * shape_.width);
    threads_->pool.for_range(count, 1, [&](size_t from, size_t to, size_t) {
      for (size_t row = from; row < to; ++row) {
        if (!head.serves(first + row)) continue;
        float* some = some_logits_.data() + row * stride;
        float* all = logits + row * logits_stride();
        if (shape_.logit_soft_cap != 0) kernels_.soft_cap(some, head.count, shape_.logit_soft_cap);
        if (!head.tokens) std::copy_n(some, head.count, all);
        else
          for (size_t i = 0; i < head.count; ++i) all[size_t(head.tokens[i])] = some[i];
      }
    });
  }
}

// The same logits, block by block, each forgotten once its best are known.
void Transformer::write_best(size_t first, size_t count) {
  const Matrix& whole = output_matrix();
  const size_t block_bytes = whole.bytes() / whole.strips() * BestTokens::block_strips;
  const uint8_t* input = input_of(whole, hidden_.data() + first * shape_.width, 0);
  size_t blocks = 0;
  for (const Head& head : heads_) blocks += head.blocks();
  best_.begin(count, blocks);
  const size_t fair = blocks / (threads() * 4);
  const size_t grain = std::clamp<size_t>(piece_bytes / block_bytes, 1, std::max<size_t>(1, fair));
  threads_->pool.for_range(blocks, grain, [&](size_t from, size_t to, size_t thread) {
    float* logits = best_.room(thread);
    size_t before = 0;
    for (const Head& head : heads_) {
      const size_t end = head.serves_any(first, count) ? std::min(to, before + head.blocks()) : 0;
      for (size_t block = std::max(from, before); block < end; ++block) {
        const BlockTokens tokens = head.tokens_of(block - before);
        kernels_.matmul(whole.format, head.matrix->data + (block - before) * block_bytes, whole.blocks_per_strip(), 0,
                        (tokens.count + lanes - 1) / lanes, input, count, logits, BestTokens::block_tokens);
        for (size_t row = 0; row < count; ++row) {
          if (!head.serves(first + row)) continue;
          float* of_row = logits + row * BestTokens::block_tokens;
          if (shape_.logit_soft_cap != 0) kernels_.soft_cap(of_row, tokens.count, shape_.logit_soft_cap);
          best_.take(kernels_, thread, row, block, tokens, of_row);
        }
      }
      before += head.blocks();
    }
  });
  best_.finish(kernels_, first);
}

}  // namespace borrador
