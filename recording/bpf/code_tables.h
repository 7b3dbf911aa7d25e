// Keeps the kernel's unwinder up to date: where code is mapped in each process, and its tables.
//
//     history.apply(record);  tables.follow(time of the record);     for each record
//     tables.publish();                                              from time to time
//
// The kernel learns only of the processes that were added, and of those that they start.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "recording/bpf/layout.h"
#include "recording/bpf/packed_images.h"
#include "recording/bpf/table_store.h"
#include "stream/history.h"
#include "stream/proc/process_table.h"

namespace pe::unwind {

// The executable mappings of one process, in the form that the kernel's unwinder reads.

constexpr bool operator==(const Mapping& a, const Mapping& b) noexcept {
  return a.start == b.start && a.end == b.end && a.base == b.base && a.index == b.index &&
         a.rows == b.rows;
}

struct ProcessMap {
  std::vector<Mapping> mappings = {};  ///< at most kMaxMappings, as in ProcessMappings
  std::size_t left_out = 0;  ///< mappings of files without room, and mappings beyond that number

  bool operator==(const ProcessMap&) const = default;
};

/// Packs files that are not packed yet.  If there are too many mappings, those of files with tables
/// stay, and the newest of the others.  A process that compiles code at run time maps ever more of
/// it, and the kernel does not record what the process unmaps.
ProcessMap map_of(const stream::AddressSpace& space, std::uint32_t pid, PackedImages& images);

class CodeTables {
 public:
  struct Statistics {
    PackedImages::Statistics files;
    std::size_t rules = 0;
    std::size_t rows_without_rule = 0;  ///< rows whose rules had no room: left to user space
    std::size_t table_bytes = 0;
    std::size_t processes_left_out = 0;   ///< times that one had no room in the kernel's map
    std::size_t processes_with_gaps = 0;  ///< some of whose mappings had to be left out
  };

  /// `history` and `store` must outlive this, as must `budget`, from which a process pays for its
  /// tables; null: no limits.
  CodeTables(const stream::History& history, TableStore& store, objects::FileMatch match,
             const PackedImages::Limits& limits = {}, Budget* budget = nullptr);

  /// Adds a process that is to be unwound.  `read_ns` (CLOCK_MONOTONIC) is a time before its
  /// mappings were read.  The history must get these mappings before the next publish().
  void add_target(std::uint32_t pid, std::uint64_t read_ns);

  /// Makes the tables of a program that will be started, if it may have a runtime.
  void expect(const std::string& path) { images_.prepare(path); }

  /// Applies the change of the history's last record.  Must be called after each record; `time_ns`
  /// is that record's time.
  void follow(std::uint64_t time_ns);

  /// Sends the changes to the kernel.  Reads new files.  Removes the kernel's data about processes
  /// that have ended, once none of their threads is left.  Meanwhile calls `meanwhile` every few
  /// milliseconds, which must not call this object.
  void publish(const std::function<void()>& meanwhile = {});

  [[nodiscard]] Statistics statistics() const;

 private:
  struct Process {
    std::uint64_t exec_ns = 0;  ///< see ProcessMappings
    ProcessMap published = {};
    bool is_published = false;
    bool has_gaps = false;
  };

  void begin(std::uint32_t pid, std::uint64_t exec_ns);
  void follow_fork(std::uint32_t parent, std::uint32_t child);
  void follow_exec(std::uint32_t pid, std::uint64_t time_ns);
  void forget(std::uint32_t pid);
  void forget_ended();
  void publish(std::uint32_t pid, Process& process);
  ProcessMap map_of(std::uint32_t pid);

  const stream::History& history_;
  TableStore& store_;
  Budget* budget_;
  PackedImages images_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::set<std::uint32_t> changed_, ended_;
  std::set<std::uint32_t> waiting_;    ///< processes that had no room
  Postponed<std::monostate> refused_;  ///< processes that could not pay for all of their tables
  std::uint64_t last_generation_ = 0;
  std::size_t processes_left_out_ = 0, processes_with_gaps_ = 0;
  std::unique_ptr<ProcessMappings> scratch_;  ///< 32 KiB
};

/// Describes the losses: "3 files without room in the kernel's tables; ..."; empty if everything
/// fitted.
std::string describe_losses(const CodeTables::Statistics& statistics);

}  // namespace pe::unwind
