// The executable mappings of this process, as far as they have been told to the stream.
//
// /proc/self/maps is read again when the size of all that is mapped has changed, which loading a
// library does, when a sample's instruction lies outside of everything known, and every kRereadNs.
// That takes a twentieth of the time at most, and a tenth of a second in advance.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>

#include "inprocess/sigprof/modules.h"
#include "inprocess/sigprof/records.h"

namespace pe::inprocess {

/// A part of the address space, and what is there.
struct Mapping {
  std::uint64_t start, end, file_offset, inode;
  std::uint32_t device_major, device_minor;
  bool operator==(const Mapping&) const = default;
};

class Mappings {
 public:
  /// Linux gives a process no more by default (vm.max_map_count).
  static constexpr std::size_t kMost = 65'530;

  /// Reads, if that is due, and writes what is new of process `pid`.  `fork_lock` is held while a
  /// fork must not come.
  void follow(RecordBuffer& buffer, std::uint32_t pid, pthread_mutex_t& fork_lock) noexcept;
  /// The same for a sample that was at `ip`: does nothing if that is in a known mapping.
  void follow_to(std::uint64_t ip, RecordBuffer& buffer, std::uint32_t pid,
                 pthread_mutex_t& fork_lock) noexcept;
  [[nodiscard]] bool has(std::uint64_t avma) const noexcept;

 private:
  struct List {
    std::array<Mapping, kMost> all;  ///< by address
    std::size_t count;
  };

  [[nodiscard]] bool may_read(std::uint64_t now_ns) noexcept;
  void read(RecordBuffer& buffer, std::uint32_t pid, pthread_mutex_t& fork_lock) noexcept;
  void take(RecordBuffer& buffer, std::uint32_t pid, std::string_view line) noexcept;

  std::array<List, 2> lists_;
  std::size_t current_;
  std::size_t compared_;  ///< of the current list, while the next one is read
  ModuleList modules_;
  std::array<char, 65536> text_;
  std::uint64_t pages_;  ///< mapped in all, when they were read
  std::uint64_t read_ns_;
  std::uint64_t debt_ns_, paid_until_ns_;  ///< of what reading has cost
  std::uint64_t since_ns_;  ///< what is not known came after this, in the time of samples
};

}  // namespace pe::inprocess
