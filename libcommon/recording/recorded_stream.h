// What becomes of the kernel's records on their way into the stream: samples that carry a copy of
// the stack leave with a call chain.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "kernel_unwind/code_tables.h"
#include "kernel_unwind/table_store.h"
#include "perf/stream_writer.h"
#include "recording/binary_keeper.h"
#include "recording/mapped_ranges.h"
#include "recording/memory_behind.h"
#include "recording/request.h"
#include "session/history.h"
#include "stacks/sample_unwinder.h"

namespace pe::recording {

class RecordedStream {
 public:
  /// `attr` is what the kernel was asked for, the layout of all records.  `writer` must outlive
  /// this.  `tables`, where the kernel walks stacks, is what it needs for that, kept up to date
  /// with the stream; it must outlive this, too.
  RecordedStream(perf::StreamWriter& writer, const perf_event_attr& attr, const Request& request,
                 kernel_unwind::TableStore* tables = nullptr);
  RecordedStream(const RecordedStream&) = delete;
  RecordedStream& operator=(const RecordedStream&) = delete;
  RecordedStream(RecordedStream&&) = delete;
  RecordedStream& operator=(RecordedStream&&) = delete;
  ~RecordedStream() = default;

  /// Takes finished records, in order of time, laid out as stated().
  using PassOn = std::function<void(const perf::Record&)>;
  /// From now on they go there instead of into the stream.
  void pass_on_to(PassOn pass_on) { pass_on_ = std::move(pass_on); }

  /// From now on called with each record that is no sample, before what it says is taken in.
  void call_before(PassOn before) { before_ = std::move(before); }

  /// The attr as the stream should state it.
  [[nodiscard]] perf_event_attr stated(const perf_event_attr& attr) const;

  /// What the kernel was asked for.
  [[nodiscard]] const perf_event_attr& layout() const noexcept { return attr_; }

  /// Writes a record or passes it on, in order of time.
  void write(const perf::Record& record);
  /// The same, of a sample with what read_behind() gave when it was new, held elsewhere.
  void write(const perf::Record& record, const stacks::Behind& behind);

  /// For a sample that has just come: what follows its copy of the stack in the process, if it may
  /// be needed and is still the same, to be held for write() right before its sample.  Lives until
  /// the next call.
  stacks::Behind read_behind(const perf::Sample& sample);
  /// See stacks::SampleUnwinder::used_of_copy().
  std::size_t used_of_copy(const perf::Sample& sample);

  /// Right when a record is passed on: what that has changed is what the history's last change is.
  [[nodiscard]] const session::History& history() const noexcept { return history_; }
  /// Null if none are kept.
  [[nodiscard]] BinaryKeeper* keeper() noexcept { return keeper_ ? &*keeper_ : nullptr; }

  /// Null if the kernel does not walk stacks.
  [[nodiscard]] kernel_unwind::CodeTables* tables() noexcept {
    return tables_ ? &*tables_ : nullptr;
  }

  [[nodiscard]] perf::StreamWriter& writer() noexcept { return writer_; }
  [[nodiscard]] bool continues_stacks() const noexcept { return continues_stacks_; }
  /// Null if stacks are not unwound here.
  [[nodiscard]] stacks::SampleUnwinder* unwinder() noexcept {
    return unwinder_ ? &*unwinder_ : nullptr;
  }
  [[nodiscard]] const stacks::SampleUnwinder* unwinder() const noexcept {
    return unwinder_ ? &*unwinder_ : nullptr;
  }

 private:
  void write_unwound(const perf::Record& record, const stacks::Behind& behind);
  void follow(const perf::Record& record);

  void finish(const perf::Record& record);

  perf::StreamWriter& writer_;
  PassOn pass_on_, before_;
  perf_event_attr attr_;
  bool continues_stacks_ = false;
  session::History history_;
  std::optional<BinaryKeeper> keeper_;
  MappedRanges mapped_;  ///< for unwinder_
  std::optional<stacks::SampleUnwinder> unwinder_;
  std::optional<kernel_unwind::CodeTables> tables_;
  perf::RecordBuilder builder_;
  MemoryBehind memory_;  ///< for the sample that has just come
  KeptBehind behind_;    ///< for the next sample to be written
};

}  // namespace pe::recording
