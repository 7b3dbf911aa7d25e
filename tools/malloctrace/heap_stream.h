// The heap of processes as a sample stream: one sample for each site and event.  Its period is the
// weight.
//
// There are five events: alloc-bytes, alloc-count, live-bytes, peak-bytes, temporary; see
// malloctrace(1).  All records of a process have the same time, that at which it was read.  The
// order of the records shows when they are valid.  A site follows the mappings that its stack uses,
// and precedes mappings that have replaced them since.  If a mapping has come back, it is written
// again.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/cli/closing.h"
#include "base/io/output.h"
#include "malloctrace/options.h"
#include "malloctrace/processes.h"
#include "malloctrace/report.h"
#include "malloctrace/script_names.h"
#include "stream/script_mapping.h"
#include "stream/stream_writer.h"

namespace pe::malloctrace {

// The closing lines: the allocations of all traced processes, and the failures.

/// Numbers for all processes together.
struct Summary {
  std::uint64_t programs = 0;  ///< each program of a process that started another (exec) counts
  std::uint64_t processes = 0, running = 0;
  std::uint64_t allocated_bytes = 0, allocations = 0;
  std::uint64_t live_bytes = 0, live_blocks = 0, temporary = 0;
  std::uint64_t highest_peak_bytes = 0;  ///< of one program
  std::uint64_t peak_slack_bytes = 0;    ///< how far off that may be
  std::uint64_t peak_excess_bytes = 0;   ///< by how much sampling may make it too high
  std::uint64_t peaks_bytes = 0;         ///< the sum of all programs' peaks
  std::uint64_t metadata_bytes = 0;      ///< memory that tracing used, shared and in the processes
  std::uint64_t walks = 0, frames_walked = 0, frames_reused = 0;
  bool is_estimated = false;  ///< by sampling

  // About the program with the largest resident set.
  std::uint64_t resident_peak_bytes = 0;  ///< 0: not known
  std::uint64_t resident_heap_bytes = 0;  ///< its own peak
  std::uint64_t mapped_peak_bytes = 0;    ///< mapped by the program itself, not by malloc
  bool is_python = false;                 ///< it has one whose own allocator does not count

  std::string holders;  ///< see HeapStream::holders()

  // Failures, as in heap::Header.
  std::uint64_t failed = 0, unknown_frees = 0, inherited_frees = 0, cut_stacks = 0;
  std::uint64_t incomplete_stacks = 0, dropped = 0, full = 0, early = 0;
  std::uint64_t earlier_frees = 0, earlier_freed_bytes = 0;  ///< of blocks from before the trace
  std::uint64_t closed = 0;  ///< processes whose tracing ended early
  std::uint64_t damaged = 0;
  std::uint64_t vanished = 0;  ///< see Processes
  std::map<std::string, std::uint64_t> refused;

  void add(const HeapOfProcess& process);
};

/// Returns "1200 allocations in 2.50 s, 34567 bytes, peak 3000 bytes, 400 bytes in 3 blocks not
/// freed".  `length` is that of the recording.
std::string describe_use(const Summary& summary, std::string_view length);
/// Returns "; of what it had before, 12 blocks (3400 bytes) freed; …" for a process that ran
/// already; `before_bytes` of its memory were then resident.
std::string describe_earlier(const Summary& summary, std::uint64_t before_bytes);
/// Adds a doubt if a process that ran already has grown by much more than its blocks explain: it
/// has an allocator that was not traced, or maps memory itself.
void add_growth(const Summary& summary, std::uint64_t grown_bytes, Closing& closing);
/// Adds these, and the processes, as figures.
void add_figures(const Summary& summary, Closing& closing);
/// Returns "1 process (2 programs)".
std::string describe_processes(const Summary& summary);
/// Returns "tracing needed 204800 bytes of memory, 3.1 % of the peak".
std::string describe_memory(const Summary& summary);
/// Adds "resident set at most 33554432 bytes, of which malloc's peak is 7.5 %", if malloc's share
/// is small.
void add_resident(const Summary& summary, Closing& closing);
/// Adds what failed, and what was not counted.
void add_losses(const Summary& summary, Closing& closing);

class HeapStream {
 public:
  /// Starts the stream.  `out` must outlive this.
  explicit HeapStream(Output& out);

  /// `time_ns` is when the process was read (CLOCK_MONOTONIC).  Times must not decrease: an earlier
  /// one becomes that of the previous process.
  void add(const HeapOfProcess& process, std::uint64_t time_ns);
  /// Ends the stream.
  void finish();

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Stacks with more frames than a record holds.
  [[nodiscard]] std::uint64_t cut_stacks() const noexcept { return cut_stacks_; }
  /// Returns "; leak (app.py:7) allocated 60.0 % of the peak; leak (app.py:7) allocated 95.0 % of
  /// what was not freed": the lines of scripts that allocated most.  Empty if none did.
  [[nodiscard]] std::string holders() const;

 private:
  /// Bytes of all stacks, or of those with the same innermost line of a script.
  struct Held {
    std::uint64_t peak_bytes = 0, live_bytes = 0;
    void add(const heap::Sums& sums) noexcept {
      peak_bytes += sums.peak_bytes;
      live_bytes += sums.live_bytes;
    }
  };
  [[nodiscard]] std::string holder(std::uint64_t Held::*bytes, std::string_view of) const;
  void note_holder(const heap::Sums& sums, std::span<const std::uint64_t> chain);
  void write_comm(const HeapOfProcess& process);
  void write_map(std::uint32_t pid, const heap::Module& module);
  void map_frames(const HeapOfProcess& process);
  void write_unmapped_code(const HeapOfProcess& process);
  void write_site(const HeapOfProcess& process, const heap::Site& site);
  void finish_record(std::uint32_t pid);
  void write_record();

  void write_function(std::uint32_t number, const stream::ScriptFunction& function);

  stream::StreamWriter writer_;
  perf_event_attr attr_;
  stream::RecordBuilder builder_;
  heap::Heap::Stack stack_;
  ScriptNames scripts_;
  std::uint32_t pid_ = 0;  ///< of the process that is being written
  Held held_;
  std::unordered_map<std::uint64_t, Held> held_by_line_;  ///< by address in the stream
  std::unordered_map<std::uint32_t, stream::ScriptFunction> functions_;  ///< by number
  /// The modules that the stream shows as mapped, by start.
  std::map<std::uint64_t, const heap::Module*> mapped_;
  bool has_overlaps_ = false;  ///< some modules of the process were at the same addresses
  std::uint64_t time_ns_ = 0;
  std::size_t round_bytes_ = 0;  ///< written since the last FINISHED_ROUND
  std::uint64_t samples_ = 0, cut_stacks_ = 0;
};

// Forwards the heaps of processes to the sample stream or to the report.

class Sink {
 public:
  /// `options` and `out` must outlive this.
  Sink(const Options& options, Output& out) : options_(options), out_(out) {
    if (options.report)
      report_.emplace(ReportChoice{options.top, options.leak_age_ns, options.lines});
    else
      stream_.emplace(out);
  }

  /// `time_ns` is as for HeapStream::add().
  void add(const HeapOfProcess& process, std::uint64_t time_ns) {
    summary_.add(process);
    if (stream_)
      stream_->add(process, time_ns);
    else
      report_->add(process);
  }

  /// To be called after the last add().  `remarks` end a report.
  void finish(const std::string& remarks) {
    if (stream_)
      stream_->finish();
    else
      out_.write(report_head(options_.command) + report_->text() + remarks);
    out_.flush();
  }

  /// Returns the summary of everything that was added.
  [[nodiscard]] Summary summary() const {
    Summary summary = summary_;
    summary.cut_stacks += stream_ ? stream_->cut_stacks() : 0;
    summary.holders = stream_ ? stream_->holders() : "";
    return summary;
  }

 private:
  const Options& options_;
  Output& out_;
  Summary summary_;
  std::optional<HeapStream> stream_;
  std::optional<Report> report_;
};

}  // namespace pe::malloctrace
