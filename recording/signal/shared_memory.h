// The shared memory (layout.h) of a process that samples itself: an untrusted file, every field of
// which is validated.
//
// The table of threads is mapped, because its numbers must be loaded and stored whole.  pread(2)
// reads the rings, so that the data cannot change while they are checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/byte_reader.h"
#include "base/fd.h"
#include "recording/signal/layout.h"

namespace pe::inprocess {

class SharedMemory {
 public:
  /// Takes ownership of a file that a process sent.  If it is no such memory, returns the reason
  /// for a message: "shared memory of the wrong size".
  static std::variant<SharedMemory, std::string> check(Fd fd);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// A checked copy of the header at the start.  The process cannot change it.
  [[nodiscard]] const Header& header() const noexcept { return header_; }
  /// Returns the text of /proc/PID/maps at the start.  Untrusted: the process may have written
  /// anything.
  [[nodiscard]] std::string maps() const;

  /// Returns the file's inode.
  [[nodiscard]] std::uint64_t inode() const noexcept;

  /// The header as it is now.  Every field may change at any time, so access it only with the loads
  /// and stores of atomics.h.
  [[nodiscard]] Header& live_header() const noexcept;
  /// `slot` is below header().max_threads.
  [[nodiscard]] Thread& thread(std::uint32_t slot) const noexcept;
  /// The number of slots that may have been used: at most header().max_threads.
  [[nodiscard]] std::uint32_t threads() const noexcept;

  /// Reads the bytes of a ring from `from` to `to`, which count as head and tail do; at most a ring
  /// full.  False if they are unreadable.
  bool read_ring(std::uint32_t slot, std::uint64_t from, std::uint64_t to,
                 std::vector<std::byte>& into) const;
  /// Releases the memory of a ring, which reads as zeros afterwards.
  void clear_ring(std::uint32_t slot) const;

 private:
  SharedMemory(Fd fd, const Header& header, std::byte* mapped) noexcept;

  [[nodiscard]] std::uint64_t ring_at(std::uint32_t slot) const noexcept;

  Header header_{};
  Fd fd_;
  std::byte* mapped_ = nullptr;  ///< kRingsAt bytes
};

}  // namespace pe::inprocess
