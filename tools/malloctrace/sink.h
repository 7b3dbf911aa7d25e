// Forwards the heaps of processes to the sample stream or to the report.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/io/output.h"
#include "malloctrace/heap_stream.h"
#include "malloctrace/options.h"
#include "malloctrace/report.h"
#include "malloctrace/summary.h"

namespace pe::malloctrace {

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
