// Memory for keys and values of a model's sequences, in chunks of one size that sequences can share.
//
// Chunks are cut from slabs, which large pages can serve. Whoever holds a chunk counts; the last holder's letting go gives
// it back, on any thread. A new chunk holds anything: zeros where it is fresh, else what its last holder wrote. Chunks go to
// slabs in the order these were made, so that slabs behind them come to be free; all but one of those go back to the system.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "memory.h"

namespace borrador {

// More chunks were asked for than the pool may give.
class CacheLimitError : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "the limit of memory for keys and values is reached"; }
};

using KvChunk = std::shared_ptr<uint8_t>;

// Safe to use from several threads.
class KvPool : public std::enable_shared_from_this<KvPool> {
 public:
  explicit KvPool(size_t chunk_bytes);

  size_t chunk_bytes() const { return chunk_bytes_; }
  // Of all chunks that are held; one that is shared counts once.
  size_t used_bytes() const;
  // Of all slabs, whether the system backs them with memory already or not.
  size_t reserved_bytes() const;
  std::optional<size_t> limit_bytes() const;
  // What is held beyond a new limit stays held; no limit: what the system gives.
  void limit(std::optional<size_t> bytes);

  // So many chunks, or none: throws CacheLimitError, or std::bad_alloc where the system refuses.
  std::vector<KvChunk> take(size_t count);

 private:
  struct Slab {
    PageBuffer memory;
    std::vector<uint8_t*> free;  // the next one last
  };
  // What a chunk does when nobody holds it any more.
  struct GiveBack {
    std::shared_ptr<KvPool> pool;
    Slab* slab;
    void operator()(uint8_t* chunk) const noexcept { pool->give_back(*slab, chunk); }
  };

  KvChunk take_one();
  Slab& slab_with_room();
  void give_back(Slab& slab, uint8_t* chunk) noexcept;
  bool is_free(const Slab& slab) const { return slab.free.size() == slab_chunks_; }

  const size_t chunk_bytes_, slab_chunks_;
  mutable std::mutex lock_;  // of what follows
  std::list<Slab> slabs_;
  size_t used_chunks_ = 0;
  std::optional<size_t> limit_bytes_;
};

}  // namespace borrador
