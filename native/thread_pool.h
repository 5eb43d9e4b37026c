// A pool that runs one parallel loop at a time, made for many very short loops in a row.
//
// Each thread starts on a contiguous part of its own, so that what it fetches ahead of a piece is its next piece; one that
// is done helps out at the far end of another's part. A loop ends when its items are done, not when every worker has
// looked at it: a worker that lost its core to another process holds nobody up unless it is in the middle of a piece.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace borrador {

class ThreadPool {
 public:
  // `threads` counts the calling thread.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const { return workers_.size() + 1; }

  // Calls body(begin, end, thread) over [0, count) in pieces of at most `grain`, each piece once, on any thread;
  // returns when all are done. `body` must not throw. Which thread runs a piece must not change its result.
  template <class Body>
  void for_range(size_t count, size_t grain, Body&& body) {
    if (count == 0) return;
    if (workers_.empty() || count <= grain) {
      body(size_t{0}, count, size_t{0});
      return;
    }
    auto* context = &body;
    run(count, grain, [](void* state, size_t begin, size_t end, size_t thread) { (*static_cast<decltype(context)>(state))(begin, end, thread); },
        const_cast<void*>(static_cast<const void*>(context)));
  }

 private:
  using Call = void (*)(void*, size_t, size_t, size_t);

  // Items [begin, end) that nobody has taken yet, in one word: begin in the low half.
  struct alignas(64) Part {
    std::atomic<uint64_t> range{0};
  };

  void run(size_t count, size_t grain, Call call, void* context);
  void work(size_t thread);
  bool take_piece(size_t thread);
  bool take_from(Part& part, bool front, size_t thread);

  std::vector<Part> parts_;
  alignas(64) std::atomic<size_t> done_{0};     // items
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts loops, for sleepers
  // The loop. Written while nothing is claimed, read by threads that hold a claim.
  alignas(64) Call call_ = nullptr;
  void* context_ = nullptr;
  std::atomic<uint64_t> grain_{1};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace borrador
