// What becomes of the kernel's records on their way into the stream: samples that carry a copy of
// the stack leave with a call chain.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "record/binary_keeper.h"
#include "record/mapped_ranges.h"
#include "record/memory_behind.h"
#include "record/request.h"
#include "stream/history.h"
#include "stream/stream_writer.h"
#include "unwind/kernel/code_tables.h"
#include "unwind/kernel/table_store.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::record {

class RecordedStream {
 public:
  /// `attr` is what the kernel was asked for, the layout of all records.  `writer` must outlive
  /// this.  `tables`, where the kernel walks stacks, is what it needs for that, kept up to date
  /// with the stream; it must outlive this, too.
  RecordedStream(stream::StreamWriter& writer, const perf_event_attr& attr, const Request& request,
                 unwind::TableStore* tables = nullptr);
  RecordedStream(const RecordedStream&) = delete;
  RecordedStream& operator=(const RecordedStream&) = delete;
  RecordedStream(RecordedStream&&) = delete;
  RecordedStream& operator=(RecordedStream&&) = delete;
  ~RecordedStream() = default;

  /// Takes finished records, in order of time, laid out as stated().
  using PassOn = std::function<void(const stream::Record&)>;
  /// From now on they go there instead of into the stream.
  void pass_on_to(PassOn pass_on) { pass_on_ = std::move(pass_on); }

  /// From now on called with each record that is no sample, before what it says is taken in.
  void call_before(PassOn before) { before_ = std::move(before); }

  /// The attr as the stream should state it.
  [[nodiscard]] perf_event_attr stated(const perf_event_attr& attr) const;

  /// What the kernel was asked for.
  [[nodiscard]] const perf_event_attr& layout() const noexcept { return attr_; }

  /// Writes a record or passes it on, in order of time.
  void write(const stream::Record& record);
  /// The same, of a sample with what read_behind() gave when it was new, held elsewhere.
  void write(const stream::Record& record, const unwind::Behind& behind);

  /// For a sample that has just come: what follows its copy of the stack in the process, if it may
  /// be needed and is still the same, to be held for write() right before its sample.  Lives until
  /// the next call.
  unwind::Behind read_behind(const stream::Sample& sample);
  /// See unwind::SampleUnwinder::used_of_copy().
  std::size_t used_of_copy(const stream::Sample& sample);

  /// Right when a record is passed on: what that has changed is what the history's last change is.
  [[nodiscard]] const stream::History& history() const noexcept { return history_; }
  /// Null if none are kept.
  [[nodiscard]] BinaryKeeper* keeper() noexcept { return keeper_ ? &*keeper_ : nullptr; }

  /// Null if the kernel does not walk stacks.
  [[nodiscard]] unwind::CodeTables* tables() noexcept { return tables_ ? &*tables_ : nullptr; }

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
  void write_unwound(const stream::Record& record, const unwind::Behind& behind);
  void follow(const stream::Record& record);

  void finish(const stream::Record& record);

  stream::StreamWriter& writer_;
  PassOn pass_on_, before_;
  perf_event_attr attr_;
  bool continues_stacks_ = false;
  stream::History history_;
  std::optional<BinaryKeeper> keeper_;
  MappedRanges mapped_;  ///< for unwinder_
  std::optional<unwind::SampleUnwinder> unwinder_;
  std::optional<unwind::CodeTables> tables_;
  stream::RecordBuilder builder_;
  MemoryBehind memory_;  ///< for the sample that has just come
  KeptBehind behind_;    ///< for the next sample to be written
};

}  // namespace pe::record
