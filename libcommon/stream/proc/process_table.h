// Processes over time: which file was mapped where, and what each thread was called.
//
// Fed with events in the order in which they happened; asked about the moment it has reached.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace pe::stream {

/// What is mapped, as far as it was recorded.
struct MappedFile {
  std::string path;           ///< "/usr/bin/ls", "[vdso]", "//anon"; as its process sees it
  std::uint64_t device = 0;   ///< as the kernel numbers it, stat(2) at times otherwise; 0 likewise
  std::uint64_t inode = 0;    ///< 0: not recorded
  std::string build_id = {};  ///< its bytes; empty: not recorded

  /// Is there no file behind it, only memory?  JIT compilers write their code there.
  [[nodiscard]] bool is_anonymous() const noexcept;
  bool operator==(const MappedFile&) const = default;
};

/// Whether a mapped file is called as a jitdump is: "/tmp/jit-123.dump".
bool is_jit_dump_name(std::string_view path);

/// An executable mapping, or that of a jitdump.
struct Mapping {
  std::uint64_t start = 0, end = 0;  ///< avma
  std::uint64_t file_offset = 0;     ///< of `start`
  /// Lives as long as the table; one object a file, in whatever processes and places it is mapped.
  const MappedFile* file = nullptr;
  std::uint64_t place = 0;  ///< in the order in which an address space has seen them
};

/// The executable mappings of one process at one moment, without overlap.
///
/// That something was unmapped is not recorded (perf_event_open(2)), so of a process that maps
/// and unmaps at ever new addresses all would be kept: the oldest go where there are more than
/// Linux allows a process by default (vm.max_map_count).
class AddressSpace {
 public:
  using ByStart = std::map<std::uint64_t, Mapping>;

  /// What was mapped there before gives way, in part or whole.
  void map(const Mapping& mapping);
  /// Null if nothing is mapped at `avma`.
  [[nodiscard]] const Mapping* find(std::uint64_t avma) const noexcept;
  [[nodiscard]] const ByStart& all() const noexcept { return mappings_; }

  static constexpr std::size_t kMaxMappings = 2 * 65'536;

 private:
  void make_room(std::uint64_t start, std::uint64_t end);
  void forget_older_half();

  ByStart mappings_;
  std::uint64_t mapped_ = 0;  ///< how many there were, ever
};

class ProcessTable {
 public:
  void map(std::uint32_t pid, std::uint64_t start, std::uint64_t size, std::uint64_t file_offset,
           const MappedFile& file);
  /// A new process shares its parent's mappings until either changes its own;
  /// a new thread is called as its parent until it is renamed.
  void fork(std::uint32_t parent_pid, std::uint32_t parent_tid, std::uint32_t pid,
            std::uint32_t tid);
  /// The process has begun another program: its mappings are gone.
  void exec(std::uint32_t pid);
  void set_comm(std::uint32_t pid, std::uint32_t tid, std::string_view comm);

  /// The process's mappings; null if none are known.
  [[nodiscard]] const AddressSpace* space(std::uint32_t pid) const;
  /// Null if nothing is known to be mapped there.
  [[nodiscard]] const Mapping* find(std::uint32_t pid, std::uint64_t avma) const;
  /// The thread's name, or its process's; ":TID" if neither was recorded, as perf writes it.
  [[nodiscard]] std::string comm(std::uint32_t pid, std::uint32_t tid) const;

 private:
  struct FileHash {
    std::size_t operator()(const MappedFile& file) const noexcept {
      return std::hash<std::string>()(file.path) ^ std::hash<std::uint64_t>()(file.inode) ^
             std::hash<std::string>()(file.build_id);
    }
  };
  AddressSpace& writable_space(std::uint32_t pid);

  std::unordered_map<std::uint32_t, std::shared_ptr<AddressSpace>> spaces_;
  std::unordered_map<std::uint32_t, std::string> comms_;  ///< by thread
  std::unordered_set<MappedFile, FileHash> files_;
};

}  // namespace pe::stream
