// Processes the kernel's records on their way into the stream: replaces copies of stacks in samples
// by call chains.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "languages/common/script_frames.h"
#include "languages/common/script_reader.h"
#include "languages/runtimes.h"
#include "recording/binary_keeper.h"
#include "recording/bpf/code_tables.h"
#include "recording/bpf/table_store.h"
#include "recording/probes/weight.h"
#include "recording/request.h"
#include "recording/stream/mapped_bytes.h"
#include "recording/stream/moved_text.h"
#include "recording/stream/synthesize.h"
#include "recording/stream/thinned_samples.h"
#include "stream/history.h"
#include "stream/stream_writer.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

/// Accepts finished records, in order of time, in the layout of RecordedStream::stated().
using PassOn = std::function<void(const stream::Record&)>;

/// The parts that only some recordings have.  They must outlive the stream.
struct StreamParts {
  unwind::TableStore* tables = nullptr;       ///< of a kernel that walks stacks; follows the stream
  languages::ScriptReader* reader = nullptr;  ///< follows the processes
  PassOn pass_on = {};                        ///< gets the finished records, instead of the stream
  /// Is called with each record before it is applied, or its stack walked.  If it returns false,
  /// the record is left out.
  std::function<bool(const stream::Record&)> before = {};
  /// Samples with these ids are marks of calls, of which only the stack pointer is written.
  std::unordered_set<std::uint64_t> marks = {};
  std::optional<Weigher> weigher = {};  ///< replaces the period of samples by their weight
  bool drops_data = false;  ///< leaves out tracepoints' data, which only the weights need
};

class RecordedStream {
 public:
  /// `attr` was given to the kernel; it is the layout of all records.  `writer` must outlive this.
  /// All that is read about processes draws on `budget`, which must also outlive this.
  RecordedStream(stream::StreamWriter& writer, const perf_event_attr& attr, const Request& request,
                 Budget& budget, StreamParts parts = {});
  RecordedStream(const RecordedStream&) = delete;
  RecordedStream& operator=(const RecordedStream&) = delete;
  RecordedStream(RecordedStream&&) = delete;
  RecordedStream& operator=(RecordedStream&&) = delete;
  ~RecordedStream() = default;

  [[nodiscard]] bool is_mark(const stream::Record& record) const;
  /// Null if no sample has a weight.
  [[nodiscard]] const Weigher* weigher() const noexcept {
    return parts_.weigher ? &*parts_.weigher : nullptr;
  }

  /// The target will start the program at `path`.  If the program may have a runtime, examines it
  /// now, which may take 0.1 s: the memory of a short-lived process must be read while it lives.
  void expect_program(const std::string& path);

  /// Returns the attr that the stream should state.
  [[nodiscard]] perf_event_attr stated(const perf_event_attr& attr) const;

  /// Returns the attr that was given to the kernel.
  [[nodiscard]] const perf_event_attr& layout() const noexcept { return attr_; }

  /// Writes or forwards a record; must be called in order of time.
  void write(const stream::Record& record);
  /// Does the same for a sample, with the result of read_behind(), which the caller has kept.
  void write(const stream::Record& record, const unwind::Behind& behind);

  /// Returns the process memory after the stack copy of a sample that has just arrived.  It is
  /// empty if it is not needed, or if the stack has changed.  The caller must hold it for write(),
  /// right before its sample.  Valid until the next call.
  unwind::Behind read_behind(const stream::Sample& sample);
  /// All records have been written: writes the samples whose thread had no other stack.  Must be
  /// called with samples of the engine that thins them.
  void finish_thinned() { thinned_.finish(); }
  /// Returns the number of thinned samples that have no callers.
  [[nodiscard]] std::uint64_t thinned_alone() const noexcept { return thinned_.written_alone(); }

  /// See unwind::SampleUnwinder::used_of_copy().
  std::size_t used_of_copy(const stream::Sample& sample);

  /// Valid during StreamParts::pass_on: its last change is that of the record just forwarded.
  [[nodiscard]] const stream::History& history() const noexcept { return history_; }
  /// Null if no binaries are kept.
  [[nodiscard]] BinaryKeeper* keeper() noexcept { return keeper_ ? &*keeper_ : nullptr; }

  /// Null if the kernel does not walk stacks.
  [[nodiscard]] unwind::CodeTables* tables() noexcept { return tables_ ? &*tables_ : nullptr; }

  /// Returns whether there were samples of interpreters whose own stacks nobody has read.
  [[nodiscard]] bool has_unread_scripts() const noexcept {
    return has_interpreter_samples_ && scripts_.counts().stacks == 0;
  }
  [[nodiscard]] const languages::ScriptMerger& scripts() const noexcept { return scripts_; }
  /// See KnownRuntime::take_hurry().
  bool take_hurry() { return runtimes_.take_hurry(); }
  [[nodiscard]] const languages::Runtimes& runtimes() const noexcept { return runtimes_; }

  [[nodiscard]] Budget& budget() noexcept { return budget_; }
  [[nodiscard]] MovedText& moved_text() noexcept { return moved_text_; }
  [[nodiscard]] stream::StreamWriter& writer() noexcept { return writer_; }
  [[nodiscard]] bool continues_stacks() const noexcept { return continues_stacks_; }
  /// Null if stacks are not unwound here.
  [[nodiscard]] unwind::SampleUnwinder* unwinder() noexcept {
    return unwinder_ ? &*unwinder_ : nullptr;
  }
  [[nodiscard]] const unwind::SampleUnwinder* unwinder() const noexcept {
    return unwinder_ ? &*unwinder_ : nullptr;
  }

 private:
  void write_rest(const stream::Record& record);
  void write_mark(const stream::Record& record);
  void write_function(std::uint32_t pid, std::uint32_t number,
                      const stream::ScriptFunction& function);
  void write_unwound(const stream::Record& record, const unwind::Behind& behind);
  std::optional<stream::Record> without_moved_text(const stream::Record& record);
  stream::Record copy_of_code(const stream::Record& record, const stream::MmapRecord& map,
                              const stream::MappedFile& file, std::uint64_t file_offset);
  void follow(const stream::Record& record);
  void follow_change(std::uint64_t time_ns);

  void hold_thinned(const stream::Record& record, const stream::Sample& sample);
  void write_thinned(const stream::Record& record, const stream::Sample& sample);

  void finish(const stream::Record& record);
  void finish_weighed(const stream::Record& record, const stream::Sample& sample);

  stream::StreamWriter& writer_;
  Budget& budget_;
  StreamParts parts_;
  perf_event_attr attr_;
  bool continues_stacks_ = false;
  stream::History history_;
  MappedBytes mapped_bytes_{budget_, history_};
  std::optional<BinaryKeeper> keeper_;
  MappedRanges mapped_;  ///< for unwinder_, as the next
  languages::Runtimes runtimes_;
  std::optional<unwind::SampleUnwinder> unwinder_;
  std::optional<unwind::CodeTables> tables_;
  stream::RecordBuilder builder_;
  std::string weighed_;        ///< the sample that finish_weighed() passes on
  std::uint64_t now_ns_ = 0;   ///< the time of the sample that is written
  std::uint64_t last_ns_ = 0;  ///< of the last record
  struct Thinned {
    std::uint64_t period;
    std::string alone;  ///< the record, with a stack of one frame
  };
  ThinnedSamples<Thinned> thinned_;
  MemoryBehind memory_;  ///< for the sample that has just arrived
  MovedText moved_text_{budget_, [this](auto pid, auto avma, auto into) {
                          return memory_.read_code(pid, avma, into);
                        }};
  std::string marked_;            ///< the result of without_moved_text()
  KeptBehind behind_;             ///< for the next sample to be written
  languages::KeptScript script_;  ///< likewise
  languages::ScriptMerger scripts_;
  std::unordered_set<std::uint32_t> interpreters_;  ///< by pid: may be interpreters
  bool has_interpreter_samples_ = false;
};

}  // namespace pe::recording
