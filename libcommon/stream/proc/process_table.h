// Tracks processes over time: the mappings of files, and the name of each thread.
//
// The caller applies events in the order in which they happened.  Queries refer to the time of the
// last event.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "base/io/regular_file.h"

namespace pe::stream {

/// Returns the number of a process or thread; "-1" for one that ended before its sample was
/// recorded.
std::string id_text(std::uint32_t id);

/// The recorded identity of a mapped file or memory.
struct MappedFile {
  std::string path;            ///< "/usr/bin/ls", "[vdso]", "//anon"; as its process sees it
  std::uint64_t device = 0;    ///< the kernel's number; stat(2) may differ; 0: not recorded
  std::uint64_t inode = 0;     ///< 0: not recorded
  std::string build_id = {};   ///< its bytes; empty: not recorded
  FileIdentity identity = {};  ///< when it was mapped

  /// Returns whether it is memory without a file.  JIT compilers write their code to such memory.
  [[nodiscard]] bool is_anonymous() const noexcept;
  bool operator==(const MappedFile&) const = default;
};

/// Returns whether a mapped file has the name of a jitdump: "/tmp/jit-123.dump".
bool is_jit_dump_name(std::string_view path);

/// An executable mapping, or that of a jitdump.
struct Mapping {
  std::uint64_t start = 0, end = 0;  ///< avma
  std::uint64_t file_offset = 0;     ///< of `start`
  /// Valid as long as the table.  All mappings of a file, in all processes, share one object.
  const MappedFile* file = nullptr;
  std::uint64_t place = 0;  ///< in the order in which the address space received its mappings
};

/// The path of anonymous code that a recorder has compared with the file around it, and that is not
/// a part of that file: AddressSpace does not regard it as moved text.
inline constexpr std::string_view kNoMovedText = "[anon]";

/// The executable mappings of one process at one moment, without overlap.
///
/// Programs move their text into anonymous memory at the same addresses, so that it has huge pages.
/// It stays the file's:
///  - anonymous memory that fills a hole between two mappings of one file, of which the second is
///    recorded later, as where mappings are read from /proc;
///  - anonymous memory that is mapped over a part of a file, from one address to another that are
///    both divisible by 2 MiB.  Without this condition a JIT compiler's code could get the names of
///    a library that was there before and is gone.
///
/// The kernel does not record that memory is unmapped (perf_event_open(2)).  So all mappings would
/// stay if a process maps and unmaps memory at ever new addresses.  The older half is dropped when
/// there are more than twice as many as Linux allows a process by default (vm.max_map_count).
class AddressSpace {
 public:
  using ByStart = std::map<std::uint64_t, Mapping>;

  /// Adds a mapping, which replaces older mappings of the same addresses, in part or whole.  One
  /// that ends a hole with moved text starts where that starts.
  void map(const Mapping& added);
  /// Returns null if nothing is mapped at `avma`.
  [[nodiscard]] const Mapping* find(std::uint64_t avma) const noexcept;
  [[nodiscard]] const ByStart& all() const noexcept { return mappings_; }

  static constexpr std::size_t kMaxMappings = 2 * 65'536;

 private:
  [[nodiscard]] bool is_moved_text(const Mapping& added) const;
  [[nodiscard]] std::uint64_t start_of_moved_text(const Mapping& behind) const;
  void make_room(std::uint64_t start, std::uint64_t end);
  void forget_older_half();

  ByStart mappings_;
  std::uint64_t mapped_ = 0;  ///< number of all mappings so far
};

class ProcessTable {
 public:
  void map(std::uint32_t pid, std::uint64_t start, std::uint64_t size, std::uint64_t file_offset,
           const MappedFile& file);
  /// A new process shares its parent's mappings until either changes its own.  A new thread has its
  /// parent's name until it is renamed.
  void fork(std::uint32_t parent_pid, std::uint32_t parent_tid, std::uint32_t pid,
            std::uint32_t tid);
  /// Removes the mappings of a process that has started another program.
  void exec(std::uint32_t pid);
  void set_comm(std::uint32_t pid, std::uint32_t tid, std::string_view comm);

  /// Returns the process's mappings; null if none are known.
  [[nodiscard]] const AddressSpace* space(std::uint32_t pid) const;
  /// Returns null if no mapping is known at `avma`.
  [[nodiscard]] const Mapping* find(std::uint32_t pid, std::uint64_t avma) const;
  /// Returns the thread's name, or its process's; ":TID", as in perf, if neither was recorded.
  [[nodiscard]] std::string comm(std::uint32_t pid, std::uint32_t tid) const;
  /// Returns the memory of all files that were ever mapped: names are kept.
  [[nodiscard]] std::size_t file_bytes() const noexcept { return file_bytes_; }

 private:
  struct FileHash {
    std::size_t operator()(const MappedFile& file) const noexcept {
      return std::hash<std::string>()(file.path) ^ std::hash<std::uint64_t>()(file.inode) ^
             std::hash<std::string>()(file.build_id) ^
             std::hash<std::uint64_t>()(file.identity.inode + file.identity.changed_ns);
    }
  };
  AddressSpace& writable_space(std::uint32_t pid);

  std::unordered_map<std::uint32_t, std::shared_ptr<AddressSpace>> spaces_;
  std::unordered_map<std::uint32_t, std::string> comms_;  ///< by thread
  std::unordered_set<MappedFile, FileHash> files_;
  std::size_t file_bytes_ = 0;
};

// Opens a file as a process sees it, which may be in a container.

/// Opens `path`, which starts with '/', below the root of `pid` (/proc/PID/root, proc(5)).  The
/// kernel resolves symbolic links as it does for the process, and never leaves its root
/// (openat2(2), RESOLVE_IN_ROOT).
std::variant<RegularFile, FileFailure> open_in_root(pid_t pid, const std::string& path,
                                                    Links links = Links::kFollow);

/// Does the same below the folder `root`, which we name: "/proc/PID/root".
std::variant<RegularFile, FileFailure> open_below(const std::string& root, const std::string& path,
                                                  Links links = Links::kFollow);

}  // namespace pe::stream
