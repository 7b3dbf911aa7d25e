// Reads the calls in a sample stream (pe-record --span): how long they took, on and off the CPUs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/io/input.h"
#include "stacktop/durations.h"
#include "stacktop/options.h"
#include "stream/session.h"
#include "stream/spans.h"

namespace pe::stacktop {

/// The calls of a function.
struct SpanLine {
  std::string function;
  stream::SpanCounts counts;
  Durations durations;         ///< of calls that have ended
  std::uint64_t total_ns = 0;  ///< of calls whose length is known; an open one lasts to the end
  std::uint64_t sampled_ns = 0, waited_ns = 0;  ///< in these, by samples and waits
};

struct SpanReport {
  std::vector<SpanLine> lines;  ///< those with the longest total are first
  bool has_samples = false;     ///< the stream has an event that samples CPU time
  bool has_waits = false;       ///< the stream has an event of waits
  std::uint64_t malformed = 0;  ///< entries and returns
  stream::Counts losses;
  std::string damage;  ///< why the input ended early; empty if it did not
};

/// Returns the time on the CPU: by samples, or what waits leave of the total; nullopt if unknown.
std::optional<std::uint64_t> on_cpu_ns(const SpanReport& report, const SpanLine& line);
/// Returns the rest of the total, or the time of waits.
std::optional<std::uint64_t> off_cpu_ns(const SpanReport& report, const SpanLine& line);

/// Throws Error if the input is not a sample stream, or has no calls.
SpanReport read_spans(Input& input);

void write_spans(const SpanReport& report, const Options& options, Output& out);

}  // namespace pe::stacktop
