// The executable mappings of this process that the stream has reported.
//
// Mappings reads /proc/self/maps again when the total mapped size has changed, for example because
// a library was loaded.  It also does so when a sample's instruction is in no known mapping, and
// every kRereadNs.  Reading uses at most a twentieth of the time, and a tenth of a second in
// advance.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>

#include "base/byte_reader.h"
#include "recording/sigprof/records.h"

namespace pe::inprocess {

// The build ids of the modules that the dynamic linker has loaded, read from this process's memory.

struct Module {
  static constexpr std::size_t kMostIdBytes = 20;  ///< as in records
  std::uint64_t start, end;                        ///< the range of all its segments
  std::uint32_t id_bytes;                          ///< 0: no build id
  std::array<std::byte, kMostIdBytes> id;
};

class ModuleList {
 public:
  /// Reads the list of loaded modules.  No fork may happen meanwhile: this holds the dynamic
  /// linker's lock.
  void read() noexcept;
  /// Returns the build id of the module that contains an address; empty if there is none.  Valid
  /// until the next read().
  [[nodiscard]] Bytes build_id_at(std::uint64_t avma) const noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }

 private:
  static constexpr std::size_t kMost = 4096;
  friend struct ModuleVisitor;

  std::array<Module, kMost> all_;
  std::uint32_t count_;
};

/// A part of the address space, and its file.
struct Mapping {
  std::uint64_t start, end, file_offset, inode;
  std::uint32_t device_major, device_minor;
  bool operator==(const Mapping&) const = default;
};

class Mappings {
 public:
  /// The default maximum of mappings per process in Linux (vm.max_map_count).
  static constexpr std::size_t kMost = 65'530;

  /// Reads the mappings, if that is due, and writes the new ones of process `pid`.  Holds
  /// `fork_lock` while no fork may happen.  Records may have any time since `oldest_ns`.
  void follow(std::uint64_t oldest_ns, RecordBuffer& buffer, std::uint32_t pid,
              pthread_mutex_t& fork_lock) noexcept;
  /// Does the same for a sample at `ip`, unless `ip` is in a known mapping.
  void follow_to(std::uint64_t ip, RecordBuffer& buffer, std::uint32_t pid,
                 pthread_mutex_t& fork_lock) noexcept;
  [[nodiscard]] bool has(std::uint64_t avma) const noexcept;

 private:
  struct List {
    std::array<Mapping, kMost> all;  ///< in order of addresses
    std::size_t count;
  };

  [[nodiscard]] bool may_read(std::uint64_t now_ns) noexcept;
  void read(RecordBuffer& buffer, std::uint32_t pid, pthread_mutex_t& fork_lock) noexcept;
  void take(RecordBuffer& buffer, std::uint32_t pid, const stream::MapsLine& map) noexcept;

  std::array<List, 2> lists_;
  std::size_t current_;
  std::size_t compared_;  ///< position in the current list, while the next one is read
  ModuleList modules_;
  std::array<char, 65536> text_;
  std::uint64_t pages_;  ///< total of mapped pages at the last read
  std::uint64_t read_ns_;
  std::uint64_t debt_ns_, paid_until_ns_;  ///< CPU time that reading has cost
  std::uint64_t since_ns_;  ///< unknown mappings are newer than this, in the time of samples
};

}  // namespace pe::inprocess
