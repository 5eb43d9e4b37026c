// A decoder-only transformer: RMS norms, grouped-query attention with rotary positions, gated feed-forward.
// Evaluates any number of rows, of any number of sequences, in one call.
#pragma once
#include <cstddef>
#include <cstring>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "attention.h"
#include "best_tokens.h"
#include "kernels/kernels.h"
#include "kv_cache.h"
#include "memory.h"
#include "rope.h"
#include "short_head.h"
#include "thread_pool.h"
#include "weights.h"

namespace borrador {

enum class Activation { silu, gelu };

// What a layer does apart from its tensors.
struct LayerShape {
  size_t window = 0;  // positions its attention sees, the row's own among them; 0: all
  int32_t rope = 0;   // which of the model's ropes turns its queries and keys; -1: none
};

// The numbers of a model. Families differ in these and in which optional vectors a layer has.
struct ModelShape {
  size_t width = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn_width = 0, vocabulary = 0;
  std::vector<LayerShape> layers;
  float norm_epsilon = 0;
  float embedding_scale = 1, attention_scale = 1;
  float attention_soft_cap = 0, logit_soft_cap = 0;  // values become cap * tanh(value / cap); 0: they stay
  Activation activation = Activation::silu;
  std::vector<RopeShape> ropes;  // divisors of frequencies belong to the first
  size_t rope_dim = 0;
  bool rope_interleaved = false;
  double rope_magnitude = 1;      // factor on turned queries and keys
  size_t experts = 0, experts_used = 0;  // feed-forwards of a layer and those that a row goes through; 0: one, for all
  bool expert_weights_normalised = true; // the weights of a row's experts sum to one, before the scale
  float expert_weights_scale = 1;
  size_t rope_short_context = 0;  // caches of more positions take the long divisors, where the model has both

  KvShape kv_shape() const { return {layers.size(), kv_heads, head_dim}; }
};

// The tokens that have logits in some rows.
struct HeadUse {
  const ShortHead* head;      // null: all tokens
  std::vector<uint8_t> rows;  // by logit row, whether it is one of them
};

// The rows of a pass. Row i follows row parents[i] of the pass, or its cache's last committed token where that is -1.
struct PassRows {
  std::span<KvCache* const> caches;
  std::span<const int32_t> cache_of_row, tokens, parents;
  std::span<const int32_t> logit_rows;  // rows whose logits are wanted
  BestWanted best = {};                 // or what is wanted in their place
  std::span<const HeadUse> heads = {};  // no token twice in a row; none: all tokens have logits in every row
};

// Threads shared by all models that ask for the same number, and the lock a pass holds: models take turns, and no
// idle worker of one competes with a busy one of another.
struct SharedPool {
  explicit SharedPool(size_t threads) : pool(threads) {}
  ThreadPool pool;
  std::mutex pass;
};
std::shared_ptr<SharedPool> shared_pool(size_t threads);

class Transformer {
 public:
  // `arena_bytes` is what all matrices need together, each rounded up to 64.
  Transformer(const ModelShape& shape, size_t arena_bytes, size_t threads, Isa isa);

  const ModelShape& shape() const { return shape_; }
  const KernelTable& kernels() const { return kernels_; }
  size_t threads() const { return threads_->pool.size(); }

  // Names are those of GGUF tensors without "blk.N." and ".weight"; layer -1 for tensors outside the layers. Expert e's
  // matrices are "ffn_gate.e" and so on. A matrix may be kept in another format than the file's, see can_repack.
  // Throws std::invalid_argument for an unknown name, a wrong size or a full arena.
  void load_matrix(int layer, std::string_view name, Format stored, Format kept, size_t rows, size_t columns, std::span<const uint8_t> source);
  void load_vector(int layer, std::string_view name, std::span<const float> values);
  // Throws std::invalid_argument where a tensor is missing.
  void finish_loading();

  // Bytes of weights a pass of one row with logits reads.
  size_t weights_bytes() const;
  // What of them belongs to the LM head.
  size_t head_bytes() const { return output_matrix().bytes(); }
  // Multiply-accumulates that one row of a pass with logits takes in the matrices.
  size_t row_macs() const;
  // Byte multiply-accumulates a second that the threads' integer units give at best, measured now.
  double integer_peak() const;

  // Room for `capacity` rows of this model's LM head, which must outlive it.
  ShortHead make_short_head(size_t capacity) const { return {output_matrix(), capacity}; }

  // What the caches of this model take their memory from.
  const std::shared_ptr<KvPool>& cache_pool() const { return cache_pool_; }
  KvCache make_cache(size_t capacity) const { return {shape_.kv_shape(), cache_pool_, capacity}; }

  // Evaluates the rows and makes them pending in their caches. Logits or best tokens, and hidden states (after the last
  // norm) of logit_rows stay valid until the next call. Throws std::invalid_argument for a token, parent or row out of
  // range, or a full cache, and as KvPool::take does; the caches hold what they held then.
  void forward(const PassRows& rows);

  const float* logits() const { return logits_.data(); }
  size_t logits_stride() const { return output_matrix().padded_rows(); }
  const float* hidden() const { return hidden_.data(); }
  const BestTokens& best() const { return best_; }

 private:
  static constexpr size_t slice_limit = 256;  // rows that go through the layers together
  static constexpr size_t most_head_dim = 1024;

  struct FeedForward {
    Matrix gate, up, down;
  };
  struct Layer {
    std::vector<float> attention_norm, ffn_norm;
    std::vector<float> query_bias, key_bias, value_bias, query_norm, key_norm;  // may be empty
    std::vector<float> post_attention_norm, post_ffn_norm;                      // of a block's output; may be empty
    Matrix query, key, value, attention_output, gate, up, down;
    Matrix router;
    std::vector<FeedForward> experts;  // in place of gate, up and down
  };
  // A matrix times rows [first, first + rows) of the values.
  struct Job {
    const Matrix* matrix;
    float* out;
    size_t rows, first = 0;
  };
  // One of a row's experts, and the place of this use of it among all of the pass, which are sorted by expert.
  struct Choice {
    size_t expert;
    float weight;
    size_t use;
  };
  // A chunk of attention that is computed ahead, and where its results lie.
  struct AheadItem {
    size_t tile, kv_head, chunk, place;
  };
  struct Use {
    size_t row, expert;
  };
  // A matrix of which each row, but for padding, gives a token's logit; the tokens count from 0 where there is no list.
  struct Head {
    const Matrix* matrix;
    const int32_t* tokens;
    size_t count;
    const uint8_t* rows;  // logit rows that it serves; null: all
    bool serves(size_t row) const { return !rows || rows[row]; }
    bool serves_any(size_t first, size_t rows_here) const { return !rows || std::memchr(rows + first, 1, rows_here); }
    size_t blocks() const { return BestTokens::blocks_of(count); }
    BlockTokens tokens_of(size_t block) const { return BestTokens::tokens_of(block, count, tokens); }
  };

  template <class Count>
  size_t sum_over_weights(Count&& count) const;
  const Matrix& output_matrix() const { return output_.data ? output_ : embedding_; }
  Matrix& matrix_slot(int layer, std::string_view name);
  std::vector<float>& vector_slot(int layer, std::string_view name);
  void prepare_ropes();
  void check(const PassRows& rows) const;
  void check_heads(const PassRows& rows) const;
  void plan_rows(const PassRows& rows);
  void begin_pass(const PassRows& rows);
  void forward_slice(const PassRows& rows, size_t begin, size_t end);
  void embed(const PassRows& rows, size_t begin);
  void ffn_block(const Layer& layer);
  void normalise_rows(const std::vector<float>& weight, bool quantised);
  template <class Body>
  void for_pieces(size_t columns, size_t rows, Body&& body);
  void quantise_rows(const float* values, size_t columns, size_t rows);
  float* finish_delta(float* delta) const;
  const uint8_t* input_of(const Matrix& matrix, const float* values, size_t first) const;
  void multiply(std::span<const Job> jobs, const float* values);
  auto activation() const { return shape_.activation == Activation::gelu ? kernels_.gelu_mul : kernels_.silu_mul; }

  // attention_block.cpp
  size_t rows_attended_together() const;
  void rotate_tables();
  void attention_block(size_t index);
  void position_heads(size_t index);
  void position_query(size_t index, size_t head, size_t row);
  void position_key_value(size_t index, size_t head, size_t row);
  const float* rope_table_of(size_t index, size_t row) const;
  void position_head(float* head, const std::vector<float>& norm, const float* table) const;
  void attend_rows(size_t index);
  bool plan_ahead();

  // head.cpp
  void choose_heads(const PassRows& rows);
  void output_block(const PassRows& rows, size_t begin);
  void finish_rows(const PassRows& rows, size_t begin, size_t from, size_t to);
  void write_logits(size_t first, size_t count);
  void write_some_logits(size_t first, size_t count);
  void write_best(size_t first, size_t count);

  // experts.cpp
  void expert_block(const Layer& layer);
  void choose_experts(size_t stride);
  void rank_experts(float* logits, Choice* choices) const;
  void quantise_use(size_t use, const float* values, size_t columns);
  void activate_uses(const FeedForward& shape);
  void multiply_experts(const Layer& layer, std::initializer_list<std::pair<Matrix FeedForward::*, float*>> parts, const float* values);
  void add_experts(size_t stride);

  ModelShape shape_;
  const KernelTable& kernels_;
  std::shared_ptr<SharedPool> threads_;
  std::shared_ptr<KvPool> cache_pool_;
  PageBuffer arena_;
  size_t arena_used_ = 0;
  std::vector<Layer> layers_;
  Matrix embedding_, output_;
  std::vector<float> output_norm_, rope_divisors_, rope_long_divisors_;
  std::vector<std::vector<double>> frequencies_;  // of each rope
  std::vector<double> long_frequencies_;          // of the first, for long caches; empty where all are alike

  // Work space of a slice of rows.
  std::vector<RowView> views_;
  std::vector<RowTile> tiles_;
  std::vector<AttentionScratch> scratch_;
  std::vector<TileAttention> tile_attentions_;
  std::vector<AheadItem> ahead_items_;
  std::vector<size_t> ahead_begin_;  // by tile and head
  std::vector<float> chunk_results_;
  size_t slice_begin_ = 0, slice_rows_ = 0, longest_past_ = 0;
  // The norm of a block's output that lies in delta_ and that state_ has not taken up yet; null where there is none.
  const std::vector<float>* pending_norm_ = nullptr;
  PageBuffer state_, normed_, query_, query_integers_, query_units_, key_, value_, attended_, delta_, gate_, up_, mixed_, activations_, rope_;
  std::vector<Head> heads_;
  std::vector<float> logits_, some_logits_, hidden_;
  BestTokens best_;

  // Work space of a layer's experts.
  PageBuffer router_, gathered_;
  std::vector<Choice> choices_;  // by row, best first
  std::vector<Use> uses_;
  std::vector<size_t> expert_begin_, expert_next_;  // first use of each expert
  std::vector<Job> jobs_;
};

}  // namespace borrador
