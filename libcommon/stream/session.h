// Reads a sample stream: its records in time order, and the state of every process at the time of
// the current record.
//
// pe-symbolize and stackfold read through it, and so see the same history.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/io/input.h"
#include "stream/history.h"
#include "stream/ordered_reader.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// Counts of the samples read, and of the data that was missing.
struct Counts {
  std::uint64_t samples = 0;            ///< samples read, without marks of calls
  std::uint64_t lost = 0;               ///< samples that the recorder reported as lost
  std::uint64_t malformed_records = 0;  ///< records, including samples, that could not be parsed
  std::uint64_t skipped_records = 0;    ///< compressed records that could not be expanded
  std::uint64_t skipped_aux_bytes = 0;  ///< a processor's own trace, which we cannot read
  std::uint64_t left_out_segments = 0;  ///< see StreamReader
  std::uint64_t out_of_order = 0;       ///< records older than one returned before them
  std::uint64_t without_user_part = 0;  ///< samples whose program's stack did not arrive
  std::uint64_t weightless = 0;         ///< samples that count 0: the field is negative or missing
};

/// Samples that the recorder reported as lost.
struct Loss {
  std::uint64_t samples;
  std::uint64_t time_ns;  ///< of the report
  const Event* event;     ///< whose samples were lost
};

class Session {
 public:
  /// `input` must outlive the session.  Throws Error if it is not a sample stream.
  explicit Session(Input& input) : reader_(input) {}

  /// From now on the period of a sample is the value of this field, in tracepoints that have it
  /// (Event::weight).
  void weigh_by(std::string field) { reader_.weigh_by(std::move(field)); }

  /// Returns the next record in time order, after it has been applied to processes().  The view is
  /// valid until the next call.
  std::optional<Record> next();

  /// Returns the current sample; nullopt if the record is not a sample, or is malformed (counted).
  [[nodiscard]] const std::optional<Sample>& sample() const noexcept { return sample_; }
  /// Returns the event of the current sample.
  [[nodiscard]] const Event* event() const noexcept { return event_; }
  /// Returns what the current record reports as lost, if it has a time.
  [[nodiscard]] const std::optional<Loss>& loss() const noexcept { return loss_; }
  [[nodiscard]] const std::optional<MappingChange>& mapping_change() const noexcept {
    return history_.mapping_change();
  }
  [[nodiscard]] const History& history() const noexcept { return history_; }

  [[nodiscard]] const ProcessTable& processes() const noexcept { return history_.processes(); }
  [[nodiscard]] const EventTable& events() const noexcept { return reader_.events(); }
  [[nodiscard]] Counts counts() const;

  /// Returns the first address of the recorded kernel mapping ("[kernel.kallsyms]_text"); 0 if
  /// there was none.
  [[nodiscard]] std::uint64_t kernel_start() const noexcept { return history_.kernel_start(); }

  /// Returns an empty text after a good end of the input, else the damage and its place.
  [[nodiscard]] std::string damage() const { return reader_.damage(); }

 private:
  bool apply(const Record& record);
  void weigh(Sample& sample, const TracepointField& field);

  OrderedReader reader_;
  History history_;
  std::optional<Sample> sample_;
  const Event* event_ = nullptr;
  LostSamples lost_;
  std::optional<Loss> loss_;
  Counts counts_;
};

/// Returns the losses for a closing line: "3 samples lost, 1 malformed record skipped"; empty if
/// nothing is missing.
std::string describe_losses(const Counts& counts);

}  // namespace pe::stream
