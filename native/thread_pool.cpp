#include "thread_pool.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace borrador {

namespace {

// About 0.2 ms of looking before a worker goes to sleep: longer than the serial work between two loops of a
// pass, short enough that an idle process uses no CPU.
constexpr int spins_before_sleep = 4000;

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) {
  for (size_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(size_t count, size_t grain, Call call, void* context) {
  count_ = count;
  grain_ = grain ? grain : 1;
  call_ = call;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(workers_.size(), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  take_pieces(0);
  for (int spins = 0; busy_.load(std::memory_order_acquire) != 0; ++spins) {
    relax();
    if (spins > spins_before_sleep) std::this_thread::yield();  // a worker may have lost its core to another process
  }
}

void ThreadPool::take_pieces(size_t thread) {
  for (;;) {
    const size_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
    if (begin >= count_) return;
    call_(context_, begin, begin + grain_ < count_ ? begin + grain_ : count_, thread);
  }
}

void ThreadPool::work(size_t thread) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t now = epoch_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < spins_before_sleep; ++spins) {
      relax();
      now = epoch_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      epoch_.wait(seen, std::memory_order_acquire);
      continue;
    }
    seen = now;
    if (stopping_) return;
    take_pieces(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace borrador
