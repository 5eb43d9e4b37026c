#include "thread_pool.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace borrador {

namespace {

// About 0.2 ms of looking before a worker goes to sleep: longer than the serial work between two loops of a
// pass, short enough that an idle process uses no CPU.
constexpr int spins_before_sleep = 4000;

constexpr uint64_t low_half = 0xffffffff;

uint64_t pack(uint64_t begin, uint64_t end) { return begin | end << 32; }

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) : parts_(threads ? threads : 1) {
  for (size_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(size_t count, size_t grain, Call call, void* context) {
  call_ = call;
  context_ = context;
  grain_.store(grain ? grain : 1, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const size_t parts = parts_.size();
  for (size_t i = 0; i < parts; ++i) parts_[i].range.store(pack(count * i / parts, count * (i + 1) / parts), std::memory_order_release);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  while (take_piece(0)) {
  }
  for (int spins = 0; done_.load(std::memory_order_acquire) != count; ++spins) {
    relax();
    if (spins > spins_before_sleep) std::this_thread::yield();  // a worker lost its core in the middle of a piece
  }
}

// From the front of the thread's own part, else from the back of another's.
bool ThreadPool::take_piece(size_t thread) {
  if (take_from(parts_[thread], true, thread)) return true;
  for (size_t other = 1; other < parts_.size(); ++other)
    if (take_from(parts_[(thread + other) % parts_.size()], false, thread)) return true;
  return false;
}

bool ThreadPool::take_from(Part& part, bool front, size_t thread) {
  uint64_t range = part.range.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t begin = range & low_half, end = range >> 32, grain = grain_.load(std::memory_order_relaxed);
    if (begin >= end) return false;
    const uint64_t size = end - begin < grain ? end - begin : grain;
    const uint64_t first = front ? begin : end - size;
    const uint64_t rest = front ? pack(begin + size, end) : pack(begin, end - size);
    if (!part.range.compare_exchange_weak(range, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    call_(context_, first, first + size, thread);
    done_.fetch_add(size, std::memory_order_release);
    return true;
  }
}

void ThreadPool::work(size_t thread) {
  while (!stopping_) {
    const uint32_t epoch = epoch_.load();
    for (int spins = 0; spins < spins_before_sleep && !stopping_; ++spins) {
      if (take_piece(thread)) spins = 0;
      else relax();
    }
    if (!stopping_) epoch_.wait(epoch);
  }
}

}  // namespace borrador
