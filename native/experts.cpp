// Mixture of experts (Shazeer et al., arXiv 1701.06538): a router chooses a few feed-forwards for every row.
//
// Rows are grouped by expert, so that a pass reads each chosen expert once. The other rows of a group change nothing:
// kernels give a row the same bits in any company, and a row adds its experts up in the order of its own ranking.
#include <algorithm>
#include <cstring>

#include "elementary.h"
#include "transformer.h"

namespace borrador {

void Transformer::expert_block(const Layer& layer) {
  const FeedForward& first = layer.experts[0];
  const size_t width = shape_.width, uses = slice_rows_ * shape_.experts_used;
  const Job route[] = {{&layer.router, router_.as<float>(), slice_rows_}};
  normalise_rows(layer.ffn_norm, layer.router.quantised());
  multiply(route, normed_.as<float>());
  choose_experts(layer.router.padded_rows());
  threads_->pool.for_range(uses, 4, [&](size_t from, size_t to, size_t) {
    for (size_t use = from; use < to; ++use) {
      float* gathered = gathered_.as<float>() + use * width;
      std::memcpy(gathered, normed_.as<float>() + uses_[use].row * width, width * sizeof(float));
      if (first.gate.quantised() || first.up.quantised()) quantise_use(use, gathered, width);
    }
  });
  multiply_experts(layer, {{&FeedForward::gate, gate_.as<float>()}, {&FeedForward::up, up_.as<float>()}}, gathered_.as<float>());
  activate_uses(first);
  multiply_experts(layer, {{&FeedForward::down, gathered_.as<float>()}}, mixed_.as<float>());
  add_experts(first.down.padded_rows());
  pending_norm_ = &layer.post_ffn_norm;
}

// Ranks the experts of every row by the router's logits, then sorts the uses of experts by expert.
void Transformer::choose_experts(size_t stride) {
  choices_.resize(slice_rows_ * shape_.experts_used);
  threads_->pool.for_range(slice_rows_, 8, [&](size_t from, size_t to, size_t) {
    for (size_t row = from; row < to; ++row) rank_experts(router_.as<float>() + row * stride, choices_.data() + row * shape_.experts_used);
  });
  expert_begin_.assign(shape_.experts + 1, 0);
  for (const Choice& choice : choices_) ++expert_begin_[choice.expert + 1];
  for (size_t e = 0; e < shape_.experts; ++e) expert_begin_[e + 1] += expert_begin_[e];
  uses_.resize(choices_.size());
  expert_next_ = expert_begin_;
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].use = expert_next_[choices_[i].expert]++;
    uses_[choices_[i].use] = {i / shape_.experts_used, choices_[i].expert};
  }
}

// The highest logits, best first and earlier experts before later ones of equal logits, with their probabilities.
void Transformer::rank_experts(float* logits, Choice* choices) const {
  const float most = *std::max_element(logits, logits + shape_.experts);
  float total = 0, chosen = 0;
  for (size_t e = 0; e < shape_.experts; ++e) total += logits[e] = float(same_exp(double(logits[e] - most)));
  for (size_t rank = 0; rank < shape_.experts_used; ++rank) {
    const size_t best = size_t(std::max_element(logits, logits + shape_.experts) - logits);
    choices[rank] = {best, logits[best], 0};
    chosen += logits[best];
    logits[best] = -1;  // below every probability
  }
  const float factor = shape_.expert_weights_scale / (shape_.expert_weights_normalised ? chosen : total);
  for (size_t rank = 0; rank < shape_.experts_used; ++rank) choices[rank].weight *= factor;
}

// Quantises the values of one use into the tiles of its expert.
void Transformer::quantise_use(size_t use, const float* values, size_t columns) {
  const size_t begin = expert_begin_[uses_[use].expert], end = expert_begin_[uses_[use].expert + 1];
  const TilePlace place = place_row(kernels_, columns, use - begin, end - begin);
  uint8_t* tiles = activations_.data() + begin * activation_blocks(columns) * activation_bytes_per_row_block;
  kernels_.quantise(values, columns, 0, activation_blocks(columns), tiles + place.offset, place.row, place.rows);
}

void Transformer::activate_uses(const FeedForward& shape) {
  const size_t width = shape_.ffn_width, stride = shape.gate.padded_rows();
  threads_->pool.for_range(uses_.size(), 1, [&](size_t from, size_t to, size_t) {
    for (size_t use = from; use < to; ++use) {
      float* mixed = mixed_.as<float>() + use * width;
      activation()(gate_.as<float>() + use * stride, up_.as<float>() + use * stride, width, mixed);
      if (shape.down.quantised()) quantise_use(use, mixed, width);
    }
  });
}

// Multiplies the uses of every expert with that expert's matrices, all in one parallel loop.
void Transformer::multiply_experts(const Layer& layer, std::initializer_list<std::pair<Matrix FeedForward::*, float*>> parts, const float* values) {
  jobs_.clear();
  for (size_t e = 0; e < shape_.experts; ++e) {
    const size_t begin = expert_begin_[e], rows = expert_begin_[e + 1] - begin;
    if (!rows) continue;
    for (const auto& [part, out] : parts) {
      const Matrix& matrix = layer.experts[e].*part;
      jobs_.push_back({&matrix, out + begin * matrix.padded_rows(), rows, begin});
    }
  }
  multiply(jobs_, values);
}

void Transformer::add_experts(size_t stride) {
  const size_t width = shape_.width;
  threads_->pool.for_range(slice_rows_, 1, [&](size_t from, size_t to, size_t) {
    for (size_t row = from; row < to; ++row) {
      float* delta = delta_.as<float>() + row * stride;
      std::fill_n(delta, width, 0.0f);
      for (size_t rank = 0; rank < shape_.experts_used; ++rank) {
        const Choice& choice = choices_[row * shape_.experts_used + rank];
        kernels_.add_scaled(delta, gathered_.as<float>() + choice.use * stride, choice.weight, width);
      }
    }
  });
}

}  // namespace borrador
