#include "kv_pool.h"

#include <algorithm>

namespace borrador {

namespace {

constexpr size_t slab_bytes = size_t{32} << 20;  // or one chunk, where that is larger

}  // namespace

KvPool::KvPool(size_t chunk_bytes)
    : chunk_bytes_(std::max<size_t>(chunk_bytes, 1)), slab_chunks_(std::max<size_t>(slab_bytes / chunk_bytes_, 1)) {}

size_t KvPool::used_bytes() const {
  std::lock_guard guard(lock_);
  return used_chunks_ * chunk_bytes_;
}

size_t KvPool::reserved_bytes() const {
  std::lock_guard guard(lock_);
  return slabs_.size() * slab_chunks_ * chunk_bytes_;
}

std::optional<size_t> KvPool::limit_bytes() const {
  std::lock_guard guard(lock_);
  return limit_bytes_;
}

void KvPool::limit(std::optional<size_t> bytes) {
  std::lock_guard guard(lock_);
  limit_bytes_ = bytes;
}

std::vector<KvChunk> KvPool::take(size_t count) {
  std::vector<KvChunk> chunks;
  chunks.reserve(count);
  while (chunks.size() < count) chunks.push_back(take_one());
  return chunks;
}

KvChunk KvPool::take_one() {
  GiveBack give_back{shared_from_this(), nullptr};
  uint8_t* chunk = nullptr;
  {
    std::lock_guard guard(lock_);
    if (limit_bytes_ && used_chunks_ + 1 > *limit_bytes_ / chunk_bytes_) throw CacheLimitError();
    Slab& slab = slab_with_room();
    chunk = slab.free.back();
    slab.free.pop_back();
    give_back.slab = &slab;
    ++used_chunks_;
  }
  return {chunk, std::move(give_back)};
}

KvPool::Slab& KvPool::slab_with_room() {
  for (Slab& slab : slabs_)
    if (!slab.free.empty()) return slab;
  Slab slab{PageBuffer(slab_chunks_ * chunk_bytes_, PageBuffer::Pages::huge), {}};
  for (size_t i = slab_chunks_; i-- > 0;) slab.free.push_back(slab.memory.data() + i * chunk_bytes_);
  return slabs_.emplace_back(std::move(slab));
}

void KvPool::give_back(Slab& slab, uint8_t* chunk) noexcept {
  std::lock_guard guard(lock_);
  slab.free.push_back(chunk);  // the room is there, it came from here
  --used_chunks_;
  if (!is_free(slab) || std::ranges::count_if(slabs_, [this](const Slab& one) { return is_free(one); }) < 2) return;
  slabs_.remove_if([&slab](const Slab& one) { return &one == &slab; });
}

}  // namespace borrador
