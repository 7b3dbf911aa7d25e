// Converts /proc's information about processes to the records that the kernel would have written.
//
// Records of processes that were running before we started carry time 0, which readers interpret as
// "before everything"; perf does the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "languages/common/memory_reader.h"
#include "recording/stream/moved_text.h"
#include "stream/proc/maps.h"
#include "stream/records/sample.h"
#include "stream/script_mapping.h"
#include "stream/stream_writer.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

class Synthesizer {
 public:
  /// Passes the records to `write`.  They have the trailer of events with `attr`, but no build ids
  /// (build_ids.h).
  Synthesizer(const perf_event_attr& attr, std::function<void(const stream::Record&)> write)
      : attr_(attr), write_(std::move(write)) {}

  /// From now on mappings() recognises moved text by this, which must outlive it.
  void recognise(MovedText& text) noexcept { moved_text_ = &text; }

  /// Writes the kernel's own mapping, by which a reader knows whether it has the same kernel.
  void kernel();
  /// Writes COMM for each thread, MMAP2 for each executable mapping.
  void process(pid_t pid);

  /// Sets the time of all further records, initially 0.
  void set_time(std::uint64_t time_ns) noexcept { time_ns_ = time_ns; }
  /// Writes FORK or EXIT.
  void task(std::uint32_t type, const stream::TaskRecord& task);
  /// Writes COMM; `misc` is 0 or PERF_RECORD_MISC_COMM_EXEC.
  void comm(pid_t pid, pid_t tid, std::string_view comm, std::uint16_t misc = 0);
  /// Writes COMM with the process's parent and its command line.
  void command_line(const stream::CommRecord& process);
  /// Writes MMAP2 for each executable mapping for which `is_new` returns true.  Code that the
  /// program has made includes the memory that it has reserved behind it.  Returns false if the
  /// process is gone, or we may not read it.
  bool mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new);
  /// Does the same with the text of a /proc/PID/maps; skips malformed lines.
  void mappings(pid_t pid, std::string_view text,
                const std::function<bool(const stream::MapsLine&)>& is_new);

  /// Writes MMAP2 for a function of an interpreted program.
  void script(pid_t pid, std::uint32_t number, const stream::ScriptFunction& function);

  /// Returns the path that the record of a mapping has.
  static std::string path_of(const stream::MapsLine& map);

  [[nodiscard]] const std::vector<pid_t>& unreadable_processes() const noexcept {
    return unreadable_;
  }

 private:
  void finish(std::uint32_t pid, std::uint32_t tid);
  void mapping(pid_t pid, const stream::MapsLine& map);

  perf_event_attr attr_;
  std::function<void(const stream::Record&)> write_;
  MovedText* moved_text_ = nullptr;
  std::uint64_t time_ns_ = 0;
  stream::RecordBuilder builder_;
  std::vector<pid_t> unreadable_;
};

// Reads the process memory that follows a sample's copy of the stack, while the sample is new.
//
// If a copy is too short for its stack, the unwinder continues in this memory.  This works until
// the process has returned so far that the copy's outer end has changed.

class MemoryBehind {
 public:
  /// Each process pays from `budget`, which must outlive this.
  explicit MemoryBehind(Budget& budget) : budget_(budget), reader_(budget) {}

  /// Returns the memory after the copy of a sample that has just arrived.  It is empty if
  /// `unwinder` does not need it, the process cannot pay for it, or has changed the copy's end.
  /// Valid until the next call.
  unwind::Behind read(const stream::Sample& sample, const perf_event_attr& attr,
                      unwind::SampleUnwinder& unwinder);

  /// Copies code of a process, like unwind::CodeSource.
  std::size_t read_code(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into);

 private:
  bool may_read(std::uint32_t pid, Resource resource, std::size_t bytes);
  bool may_read_behind(std::uint32_t pid, std::size_t bytes);

  Budget& budget_;
  languages::MemoryReader reader_;
  std::vector<std::byte> memory_;
  std::size_t rest_bytes_ = std::size_t{8} << 20;  ///< may be read once the recording has ended
};

/// Calls `on_record` with the pieces of records that contain the memory.  They are internal: they
/// come right before their sample, and KeptBehind reads them.  There is at least one, also for no
/// memory.
void make_behind_records(const unwind::Behind& behind, std::uint64_t time_ns,
                         const std::function<void(std::initializer_list<Bytes>)>& on_record);
/// Returns the time of such a record; nullopt for any other record.
std::optional<std::uint64_t> time_of_behind(const stream::Record& record);

/// The memory that came right before a sample, for use with that sample.
class KeptBehind {
 public:
  /// Returns false if the record is not such a record.
  bool take(const stream::Record& record);
  [[nodiscard]] unwind::Behind view() const noexcept { return {bytes_, agreed_}; }
  void forget() noexcept { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t agreed_ = 0;
};

}  // namespace pe::recording
