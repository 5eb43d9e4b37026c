// Page-aligned memory that is zero when fresh and committed page by page as it is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace borrador {

class PageBuffer {
 public:
  enum class Pages { normal, huge };

  PageBuffer() = default;
  // Throws std::bad_alloc. `huge` asks for 2 MiB pages (a hint: smaller ones serve where the system has none).
  PageBuffer(size_t bytes, Pages pages);
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// Bytes a second when `threads` threads read a buffer of `bytes` bytes; the best of `repeats` sweeps.
double read_bandwidth(size_t threads, size_t bytes, size_t repeats);

}  // namespace borrador
