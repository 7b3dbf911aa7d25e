// The memory that a process which samples itself shares (layout.h), as a file of which nothing is
// believed.
//
// The table of threads is mapped, for numbers in it must be loaded and stored whole; rings are read
// by pread(2), so that what has been read cannot change under who checks it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/byte_reader.h"
#include "base/fd.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

class SharedMemory {
 public:
  /// Takes over what a process sent.  If it is no such memory, why not: "shared memory of the
  /// wrong size", for a message.
  static std::variant<SharedMemory, std::string> check(Fd fd);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// As it was when the process began: checked, and not changed by it any more.
  [[nodiscard]] const Header& header() const noexcept { return header_; }
  /// The text of /proc/PID/maps of that time; whatever the process wrote there.
  [[nodiscard]] std::string maps() const;

  /// As it is now: every field may change at any time, and only loads and stores of atomics.h are
  /// for them.
  [[nodiscard]] Header& live_header() const noexcept;
  /// `slot` is below header().max_threads.
  [[nodiscard]] Thread& thread(std::uint32_t slot) const noexcept;
  /// Slots that may have been used: within header().max_threads.
  [[nodiscard]] std::uint32_t threads() const noexcept;

  /// Bytes of a ring, from `from` up to `to`, counted as head and tail are; at most a ring full.
  /// False if they cannot be read.
  bool read_ring(std::uint32_t slot, std::uint64_t from, std::uint64_t to,
                 std::vector<std::byte>& into) const;
  /// Gives the memory of a ring back; it holds zeros then.
  void clear_ring(std::uint32_t slot) const;

 private:
  SharedMemory(Fd fd, const Header& header, std::byte* mapped) noexcept;

  [[nodiscard]] std::uint64_t ring_at(std::uint32_t slot) const noexcept;

  Header header_{};
  Fd fd_;
  std::byte* mapped_ = nullptr;  ///< kRingsAt bytes
};

}  // namespace pe::inprocess
