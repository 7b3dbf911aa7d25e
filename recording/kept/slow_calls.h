// Reports slow calls of functions (--span) to another program while they are recorded.
//
//     {"function":"handle","pid":7,"tid":8,"time_ns":1000,"ns":250000000}
//
// Each line is a call that has returned: its end on the clock of the samples, and its length.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "recording/kept/written_records.h"
#include "stream/records/event.h"
#include "stream/spans.h"

namespace pe::recording {

struct SlowCallRequest {
  std::uint64_t longer_ns = 0;
  int fd = -1;  ///< -1: no reports
};

/// Forwards a stream to another output, and reports the slow calls in it.
class SlowCallOutput final : public Output {
 public:
  /// `out` must outlive this.
  SlowCallOutput(Output& out, const SlowCallRequest& request);

  /// Accepts whole records, as KeptOutput does.
  void write(std::string_view bytes) override;
  void flush() override { out_.flush(); }
  [[nodiscard]] bool is_terminal() const noexcept override { return out_.is_terminal(); }
  [[nodiscard]] int fd() const noexcept override { return out_.fd(); }
  void wait_by(const WaitForRoom& wait) override { out_.wait_by(wait); }

  /// Returns how many reports nobody has read in time.
  [[nodiscard]] std::uint64_t unreported() const noexcept { return unreported_; }

 private:
  void follow(const stream::Record& record);
  void report(const stream::Span& span);

  Output& out_;
  SlowCallRequest request_;
  WrittenRecords written_;
  stream::EventTable events_;
  stream::Spans spans_;
  std::uint64_t unreported_ = 0;
};

}  // namespace pe::recording
