// A map's value, mapped into our memory.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace pe::unwind {

class MappedMemory {
 public:
  MappedMemory() = default;
  /// Throws Error.
  MappedMemory(int map, std::size_t bytes, int protection) : bytes_(bytes) {
    void* start = ::mmap(nullptr, bytes, protection, MAP_SHARED, map, 0);
    if (start == MAP_FAILED)
      throw_errno("eBPF: a map's memory", errno);
    start_ = start;
  }
  MappedMemory(MappedMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() {
    if (start_ != nullptr)
      ::munmap(start_, bytes_);
  }

  /// nullptr if nothing is mapped.
  [[nodiscard]] void* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* start_ = nullptr;
  std::size_t bytes_ = 0;
};

// Formats the output of the kernel's verifier as a part of a message.

/// Returns "; the verifier: " and the last lines of its log, which show where it gave up.  They
/// form one line, with " | " between them.  Returns an empty text for an empty log.  A log ends
/// with its first NUL.
inline std::string verifier_message(std::string_view log) {
  constexpr std::size_t kLines = 30;
  log = log.substr(0, log.find('\0'));
  while (log.ends_with('\n'))
    log.remove_suffix(1);
  if (log.empty())
    return {};
  std::size_t start = log.size();
  for (std::size_t lines = 0; lines < kLines && start != std::string_view::npos; ++lines)
    start = start == 0 ? std::string_view::npos : log.rfind('\n', start - 1);
  std::string text = "; the verifier: ";
  for (const char byte : log.substr(start == std::string_view::npos ? 0 : start + 1)) {
    if (byte == '\n')
      text += " | ";
    else
      text += byte;
  }
  return text;
}

}  // namespace pe::unwind
