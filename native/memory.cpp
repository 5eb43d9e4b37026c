#include "memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#ifdef _WIN32
#define NOMINMAX
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace borrador {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

uint64_t sum_words(const uint64_t* words, size_t count) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

}  // namespace

#ifdef _WIN32
PageBuffer::PageBuffer(size_t bytes, Pages) : bytes_(round_up(std::max<size_t>(bytes, 1), huge_page)) {
  data_ = static_cast<uint8_t*>(VirtualAlloc(nullptr, bytes_, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  if (!data_) throw std::bad_alloc();
}

PageBuffer::~PageBuffer() {
  if (data_) VirtualFree(data_, 0, MEM_RELEASE);
}
#else
PageBuffer::PageBuffer(size_t bytes, Pages pages) : bytes_(round_up(std::max<size_t>(bytes, 1), huge_page)) {
  if (bytes > SIZE_MAX - 2 * huge_page) throw std::bad_alloc();
  // One huge page more than needed, so that the start can be aligned to one; what is left over goes back.
  void* raw = mmap(nullptr, bytes_ + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<uint8_t*>(raw);
  const size_t head = (huge_page - reinterpret_cast<uintptr_t>(start) % huge_page) % huge_page;
  if (head) munmap(start, head);
  if (huge_page - head) munmap(start + head + bytes_, huge_page - head);
  data_ = start + head;
#ifdef MADV_HUGEPAGE
  if (pages == Pages::huge) madvise(data_, bytes_, MADV_HUGEPAGE);
#else
  (void)pages;
#endif
}

PageBuffer::~PageBuffer() {
  if (data_) munmap(data_, bytes_);
}
#endif

double read_bandwidth(size_t threads, size_t bytes, size_t repeats) {
  using clock = std::chrono::steady_clock;
  threads = std::max<size_t>(threads, 1);
  const size_t words = std::max<size_t>(bytes / 8 / threads, 8);
  PageBuffer buffer(words * threads * 8, PageBuffer::Pages::huge);
  std::fill_n(buffer.as<uint64_t>(), words * threads, uint64_t{1});
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<size_t> ready{0};
    auto sweep = [&](size_t index) {
      ready.fetch_add(1);
      while (ready.load() < threads) std::this_thread::yield();
      sink += sum_words(buffer.as<uint64_t>() + index * words, words);
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(sweep, i);
    while (ready.load() + 1 < threads) std::this_thread::yield();
    const auto start = clock::now();
    sweep(0);
    for (auto& thread : others) thread.join();
    best = std::max(best, double(words * threads * 8) / std::chrono::duration<double>(clock::now() - start).count());
  }
  return best;
}

}  // namespace borrador
