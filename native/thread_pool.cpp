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
  pieces_ = (count + grain_ - 1) / grain_;
  call_ = call;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  const size_t pieces = pieces_;
  unclaimed_.store(int64_t(pieces), std::memory_order_release);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  while (take_piece(0)) {
  }
  for (int spins = 0; done_.load(std::memory_order_acquire) != pieces; ++spins) {
    relax();
    if (spins > spins_before_sleep) std::this_thread::yield();  // a worker lost its core in the middle of a piece
  }
}

bool ThreadPool::take_piece(size_t thread) {
  if (unclaimed_.load(std::memory_order_relaxed) <= 0) return false;
  const int64_t left = unclaimed_.fetch_sub(1, std::memory_order_acq_rel);
  if (left <= 0) return false;
  const size_t begin = (pieces_ - size_t(left)) * grain_;
  call_(context_, begin, begin + grain_ < count_ ? begin + grain_ : count_, thread);
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void ThreadPool::work(size_t thread) {
  while (!stopping_) {
    const uint32_t epoch = epoch_.load();
    for (int spins = 0; spins < spins_before_sleep && !stopping_; ++spins) {
      if (take_piece(thread)) spins = 0;
      else relax();
    }
    if (unclaimed_.load() <= 0 && !stopping_) epoch_.wait(epoch);
  }
}

}  // namespace borrador
