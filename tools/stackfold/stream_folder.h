// A sample stream to stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "folded/folded_counts.h"
#include "session/session.h"
#include "stackfold/frames.h"
#include "stackfold/options.h"
#include "stackfold/sample_choice.h"

namespace pe::fold {

/// What became of a stream, for the closing line.
struct StreamReport : SampleChoice {
  session::Counts counts;
  std::uint64_t undefined_symbols = 0;  ///< frames whose LOCATION names no SYMBOL
  std::vector<std::string> events;      ///< all that the stream declares
  bool is_nameless = false;             ///< addresses, but not one name for them
  bool is_lineless = false;             ///< names, but not one source line for them
  std::string damage;                   ///< empty, or how the input ended badly
};

class StreamFolder {
 public:
  /// `input` and `counts` must outlive this.  Throws Error if the input is no sample stream.
  StreamFolder(io::Input& input, const Options& options, folded::FoldedCounts& counts);

  /// Reads to the end and adds every stack to the counts.
  StreamReport fold();

 private:
  void take(const perf::Record& record);
  void take_sample(std::uint16_t misc);
  void take_waker(std::uint16_t misc);
  void add_frames(std::uint16_t misc);
  void add_waker(const perf::Sample& woken);
  bool is_chosen(const perf::Sample& sample, const perf::Event& event);
  [[nodiscard]] std::string first_event() const;
  /// Only the units of our own recorders say that a period is a weight: perf declares one ("msec")
  /// for its clock events, whose period is just the distance between samples.
  std::uint64_t weight_of(const perf::Sample& sample, const perf::Event& event) const;
  FrameId root_of(std::uint32_t pid, std::uint32_t tid);

  Options options_;
  session::Session session_;
  folded::FoldedCounts& counts_;
  folded::FoldedCounts in_ns_;  ///< of an event in nanoseconds, which are counted in microseconds
  bool has_names_ = false;      ///< a SYMBOL was read
  Locations locations_;
  FrameId unknown_;  ///< "[unknown]"
  boost::unordered_flat_map<std::uint64_t, FrameId>
      roots_;                        ///< by pid and tid, until a name changes
  std::vector<FrameId> leaf_first_;  ///< of the sample at hand
  std::vector<FrameId> waker_;       ///< likewise, of who woke the next sample's thread
  std::uint64_t waker_time_ns_ = 0;  ///< of that sample, which must have the same
  StreamReport report_;
};

}  // namespace pe::fold
