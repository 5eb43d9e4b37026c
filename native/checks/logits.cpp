// Prints the bits of logits of three small random models, which must be equal on every instruction set and machine.
//
//   logits --list    the instruction sets that can be asked for here, one a line
//   logits NAME      one line for each row of logits: a label, then the bits of every logit in hexadecimal
//
// Between them the models hold every format and every optional part of a layer; their prompts arrive in chunks that are
// no multiple of anything, are followed by a tree, of which a branch is committed, and by a single token.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cpu.h"
#include "float16.h"
#include "transformer.h"

namespace borrador {
namespace {

// splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators).
struct Random {
  uint64_t state;

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t limit) { return size_t(next() % limit); }
  // In [low, high), a multiple of (high - low) / 2^20.
  float between(float low, float high) { return low + (high - low) * float(next() >> 44) * 0x1p-20f; }
};

// Where a block of a GGUF format keeps its half-precision numbers, and their size for weights of about 0.05.
struct BlockShape {
  Format format;
  size_t columns;
  float scale, minimum;
  int scale_at, minimum_at;
};
constexpr BlockShape block_shapes[] = {
    {Format::q4_0, 32, 0.01f, 0, 0, -1},        {Format::q4_1, 32, 0.01f, -0.075f, 0, 2},    {Format::q5_0, 32, 0.005f, 0, 0, -1},
    {Format::q5_1, 32, 0.005f, -0.08f, 0, 2},   {Format::q8_0, 32, 0.0007f, 0, 0, -1},       {Format::q2_k, 256, 0.005f, 0.007f, 80, 82},
    {Format::q3_k, 256, 0.0012f, 0, 108, -1},   {Format::q4_k, 256, 0.0003f, 0.002f, 0, 2},  {Format::q5_k, 256, 0.00015f, 0.002f, 0, 2},
    {Format::q6_k, 256, 0.00004f, 0, 208, -1},  {Format::iq4_nl, 32, 0.0007f, 0, 0, -1},     {Format::iq4_xs, 256, 0.00004f, 0, 0, -1},
};

void put_half(std::vector<uint8_t>& bytes, size_t at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(bytes.data() + at, &half, sizeof half);
}

void fill_floats(std::vector<uint8_t>& bytes, Format format, Random& random) {
  const size_t size = format == Format::f32 ? 4 : 2;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const float value = random.between(-0.09f, 0.09f);
    const auto bits = std::bit_cast<uint32_t>(value);
    if (format == Format::f16) put_half(bytes, at, value);
    else std::memcpy(bytes.data() + at, reinterpret_cast<const uint8_t*>(&bits) + (4 - size), size);  // the high half is a bfloat16
  }
}

// A tensor of random codes and plausible scales as it stands in a file.
std::vector<uint8_t> random_tensor(Format format, size_t rows, size_t columns, Random& random) {
  std::vector<uint8_t> bytes(gguf_bytes(format, rows, columns));
  for (uint8_t& byte : bytes) byte = uint8_t(random.next() >> 56);
  if (format == Format::f32 || format == Format::f16 || format == Format::bf16) fill_floats(bytes, format, random);
  if (format == Format::mxfp4)
    for (size_t at = 0; at < bytes.size(); at += 17) bytes[at] = uint8_t(119 + random.below(3));
  for (const BlockShape& shape : block_shapes) {
    if (shape.format != format) continue;
    const size_t block_bytes = gguf_bytes(format, 1, shape.columns);
    for (size_t at = 0; at < bytes.size(); at += block_bytes) {
      put_half(bytes, at + size_t(shape.scale_at), shape.scale * random.between(0.5f, 1.5f));
      if (shape.minimum_at >= 0) put_half(bytes, at + size_t(shape.minimum_at), shape.minimum * random.between(0.5f, 1.5f));
    }
  }
  return bytes;
}

// A model under construction: formats are dealt out in turn.
class Maker {
 public:
  // `rounded`: all matrices are kept as Q4_0.
  Maker(const ModelShape& shape, std::vector<Format> formats, Isa isa, uint64_t seed, bool rounded = false)
      : model_(shape, size_t{8} << 20, 2, isa), formats_(std::move(formats)), random_{seed}, rounded_(rounded) {}

  void matrix(int layer, const std::string& name, size_t rows, size_t columns) { put(layer, name, next_format(), rows, columns); }
  void vector(int layer, const std::string& name, size_t count, float low, float high) {
    std::vector<float> values(count);
    for (float& value : values) value = random_.between(low, high);
    model_.load_vector(layer, name, values);
  }
  // One for each suffix, all of the same formats.
  void feed_forwards(int layer, const std::vector<std::string>& suffixes) {
    const ModelShape& s = model_.shape();
    const Format gate = next_format(), up = next_format(), down = next_format();
    for (const std::string& suffix : suffixes) {
      put(layer, "ffn_gate" + suffix, gate, s.ffn_width, s.width);
      put(layer, "ffn_up" + suffix, up, s.ffn_width, s.width);
      put(layer, "ffn_down" + suffix, down, s.width, s.ffn_width);
    }
  }
  void layer(int index, bool optional_parts) {
    const ModelShape& s = model_.shape();
    const size_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
    matrix(index, "attn_q", queries, s.width);
    matrix(index, "attn_k", keys, s.width);
    matrix(index, "attn_v", keys, s.width);
    matrix(index, "attn_output", s.width, queries);
    for (const char* name : {"attn_norm", "ffn_norm"}) vector(index, name, s.width, 0.5f, 1.5f);
    std::vector<std::string> suffixes;
    for (size_t e = 0; e < s.experts; ++e) suffixes.push_back(std::string(".").append(std::to_string(e)));
    if (s.experts) matrix(index, "ffn_gate_inp", s.experts, s.width);
    else suffixes.emplace_back();
    feed_forwards(index, suffixes);
    if (!optional_parts) return;
    vector(index, "attn_q.bias", queries, -0.5f, 0.5f);
    vector(index, "attn_k.bias", keys, -0.5f, 0.5f);
    vector(index, "attn_v.bias", keys, -0.5f, 0.5f);
    for (const char* name : {"attn_q_norm", "attn_k_norm"}) vector(index, name, s.head_dim, 0.5f, 1.5f);
    for (const char* name : {"post_attention_norm", "post_ffw_norm"}) vector(index, name, s.width, 0.5f, 1.5f);
  }
  Transformer& finish(bool optional_parts) {
    const ModelShape& s = model_.shape();
    for (size_t i = 0; i < s.layers.size(); ++i) layer(int(i), optional_parts);
    matrix(-1, "token_embd", s.vocabulary, s.width);
    matrix(-1, "output", s.vocabulary, s.width);
    vector(-1, "output_norm", s.width, 0.5f, 1.5f);
    if (optional_parts) vector(-1, "rope_freqs", s.rope_dim / 2, 1, 8);
    model_.finish_loading();
    return model_;
  }

 private:
  Format next_format() { return formats_[next_++ % formats_.size()]; }
  void put(int layer, const std::string& name, Format format, size_t rows, size_t columns) {
    model_.load_matrix(layer, name, format, rounded_ ? Format::q4_0 : format, rows, columns, random_tensor(format, rows, columns, random_));
  }

  Transformer model_;
  std::vector<Format> formats_;
  Random random_;
  bool rounded_;
  size_t next_ = 0;
};

// Evaluates rows of one cache and prints the logits of those wanted.
void print_pass(const char* label, Transformer& model, KvCache& cache, const std::vector<int32_t>& parents, const std::vector<int32_t>& wanted,
                Random& random) {
  std::vector<int32_t> tokens(parents.size());
  for (int32_t& token : tokens) token = int32_t(random.below(model.shape().vocabulary));
  const std::vector<int32_t> cache_of_row(parents.size(), 0);
  KvCache* const caches[] = {&cache};
  model.forward({caches, cache_of_row, tokens, parents, wanted});
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::printf("%s/%d", label, wanted[i]);
    for (size_t v = 0; v < model.shape().vocabulary; ++v) {
      const float logit = model.logits()[i * model.logits_stride() + v];
      if (!std::isfinite(logit)) throw std::runtime_error("a logit is not finite");
      std::printf(" %08x", std::bit_cast<uint32_t>(logit));
    }
    std::printf("\n");
  }
}

std::vector<int32_t> chain(size_t count) {
  std::vector<int32_t> parents(count);
  for (size_t i = 0; i < count; ++i) parents[i] = int32_t(i) - 1;
  return parents;
}

void print_sequence(const char* name, Transformer& model, std::initializer_list<size_t> chunks) {
  Random random{7};
  KvCache cache = model.make_cache(512);
  for (const size_t count : chunks) {
    const auto rows = chain(count);
    const auto last = int32_t(count) - 1;
    print_pass(name, model, cache, rows, {0, last / 2, last}, random);
    std::vector<int32_t> path(count);
    std::iota(path.begin(), path.end(), 0);
    cache.commit(path);
  }
  print_pass(name, model, cache, {-1, 0, 0, 1, 2, -1, 5, 3, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, random);
  cache.commit(std::vector<int32_t>{0, 1, 3, 7});
  print_pass(name, model, cache, {-1}, {0}, random);
}

// Every quantised format; rotary halves, one window, soft caps, SiLU.
void print_quantised(Isa isa) {
  ModelShape shape;
  shape.width = 256, shape.heads = 4, shape.kv_heads = 2, shape.head_dim = 64, shape.ffn_width = 256, shape.vocabulary = 72;
  shape.layers = {{0, 0}, {100, 0}};
  shape.norm_epsilon = 1e-5f;
  shape.attention_scale = 0.125f, shape.attention_soft_cap = 50, shape.logit_soft_cap = 30;
  shape.ropes = {{10000, 1}};
  shape.rope_dim = 64;
  std::vector<Format> formats{Format::mxfp4, Format::q4_k, Format::q6_k};
  for (const BlockShape& block : block_shapes) formats.push_back(block.format);
  Maker maker(shape, formats, isa, 1);
  print_sequence("quantised", maker.finish(false), {37, 258});
}

// The float formats and two of blocks of 32, in odd sizes; biases, norms everywhere, experts, two ropes, GELU. Also rounded.
void print_odd(Isa isa, bool rounded) {
  ModelShape shape;
  shape.width = 96, shape.heads = 6, shape.kv_heads = 2, shape.head_dim = 48, shape.ffn_width = 160, shape.vocabulary = 61;
  shape.layers = {{0, 0}, {19, 1}, {0, -1}};
  shape.norm_epsilon = 1e-6f;
  shape.embedding_scale = 9.75f, shape.attention_scale = 0.144f;
  shape.activation = Activation::gelu;
  shape.ropes = {{1e6, 0.125}, {10000, 1}};
  shape.rope_dim = 32;
  shape.rope_interleaved = true;
  shape.rope_magnitude = 1.1;
  shape.experts = 4, shape.experts_used = 2;
  Maker maker(shape, {Format::f16, Format::f32, Format::q8_0, Format::bf16, Format::q5_1}, isa, 2, rounded);
  print_sequence(rounded ? "rounded" : "odd", maker.finish(true), {21, 1, 70});
}

bool is_runnable(Isa isa) {
#ifdef BORRADOR_AVXVNNI_AS_AVX512
  return isa == Isa::avxvnni && is_available(Isa::avx512vnni);
#else
  return is_available(isa);
#endif
}

int run(std::string_view wanted) {
  for (const Isa isa : all_isas) {
    if (!is_runnable(isa)) continue;
    if (wanted == "--list") std::puts(kernels_for(isa).name);
    if (wanted != kernels_for(isa).name) continue;
    print_quantised(isa);
    print_odd(isa, false);
    print_odd(isa, true);
    return 0;
  }
  return wanted == "--list" ? 0 : 2;
}

}  // namespace
}  // namespace borrador

int main(int count, char** arguments) {
  const std::string_view wanted = count == 2 ? arguments[1] : "";
  try {
    if (const int status = borrador::run(wanted)) {
      std::fprintf(stderr, "usage: logits --list | one of its names\n");
      return status;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "logits: %s\n", error.what());
    return 1;
  }
  return 0;
}
