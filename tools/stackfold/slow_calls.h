// Keeps the stacks inside the calls of a function that take longer than a limit (--span, --longer).
//
// Whether a call is slow is known at its end.  Until then its stacks are held, each once, with the
// sum of its counts.  With a timeline, they are held with their times.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stackfold/folded_counts.h"
#include "stackfold/options.h"
#include "stackfold/thread_times.h"
#include "stream/session.h"
#include "stream/spans.h"

namespace pe::fold {

/// Returns the class of a call's duration, whose limits are 1, 2 and 5 times a power of ten:
/// "50-100 ms", "0-1 us".
std::string duration_class(std::uint64_t ns);

/// A stack and its count.
struct StackCount {
  std::span<const folded::FrameId> stack;  ///< root first
  bool is_time = false;                    ///< `weight` is in nanoseconds
  std::uint64_t weight = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< equal for a moment; only used with a timeline
};

/// The calls, and the samples of the folded event, for the closing line.
struct SlowCallReport {
  std::string function;  ///< as the user wrote it; empty: there is none
  stream::SpanCounts calls;
  std::uint64_t slow_calls = 0;
  std::uint64_t longest_ns = 0;  ///< the longest call whose end is known
  double slow_ns = 0;            ///< their durations
  KindTimes times;              ///< the parts of it; all 0 if the stream does not have all of these
  std::uint64_t malformed = 0;  ///< entries and returns
  std::uint64_t samples = 0;    ///< in slow calls
  std::uint64_t in_fast = 0;    ///< samples in other calls
  std::uint64_t in_left = 0;    ///< samples in calls that never returned, or after them
  std::uint64_t outside = 0;    ///< samples outside of calls
};

/// "handle: 30 of 1000 calls took longer than 10 ms; left out: 5 samples outside of calls".
std::string describe(const SlowCallReport& report, std::uint64_t longer_ns);

class SlowCalls {
 public:
  /// Receives a held stack, whose first frame is the function with its class of duration.
  using Keep = std::function<void(const StackCount&)>;
  /// `frames` must outlive this; `input` is the stream's name.
  SlowCalls(folded::FrameTable& frames, const Options& options, const std::string& input,
            Keep keep);

  /// Follows a record that the session has applied.  Throws Error if the stream does not have
  /// exactly the requested function.
  void follow(const stream::Record& record, const stream::Session& session);
  /// Holds a stack if the sample's thread is in a call.
  void hold(const stream::Sample& sample, std::string_view event, const StackCount& counted);
  /// The stream has ended: a call that is open has lasted as long as the recording knows.
  SlowCallReport finish();

 private:
  struct Timed {
    folded::StackId stack;
    bool is_time;
    std::uint64_t weight, begin_ns, end_ns;
  };
  struct Held {
    boost::unordered_flat_map<std::uint64_t, std::uint64_t> sums;  ///< by stack and is_time
    std::vector<Timed> timed;
    std::uint64_t samples = 0;
    KindTimes times;
  };

  void choose(const stream::Session& session);
  void end(const stream::Span& span, stream::SpanEnd how);
  void keep(const stream::Span& span, const Held& held);
  void add_times(const stream::Span& span, KindTimes times);

  folded::FrameTable& frames_;
  std::string input_;  ///< its name
  std::optional<std::string> wanted_;
  std::uint64_t longer_ns_;
  bool with_times_;
  bool takes_all_;             ///< no samples are left out
  bool has_all_time_ = false;  ///< CPU samples and waits are all there
  Keep keep_;
  stream::Spans spans_;
  std::optional<std::uint32_t> function_;         ///< its index in spans_
  folded::FoldedCounts stacks_;                   ///< numbers the held stacks
  std::unordered_map<std::uint64_t, Held> held_;  ///< by the span's number
  std::vector<folded::FrameId> stack_;
  SlowCallReport report_;
};

}  // namespace pe::fold
