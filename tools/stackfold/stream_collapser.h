// Converts a sample stream to folded stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/address_map.h"
#include "stackfold/elapsed.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"
#include "stackfold/root_frames.h"
#include "stackfold/slow_calls.h"
#include "stackfold/stream_stacks.h"
#include "stackfold/thread_times.h"
#include "stream/proc/process_table.h"
#include "stream/records/callchain.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"
#include "stream/session.h"

namespace pe::fold {

// Maps the addresses of a stream to frames.
//
// The reader converts a sample's addresses to frame numbers at once, because the meaning of an
// address can change later (exec, dlclose, a JIT).

using folded::FrameId;

/// The frames at the addresses of each process.
class Locations {
 public:
  /// `texts` must outlive this.
  Locations(folded::FrameTable& texts, const Options& options)
      : texts_(texts),
        marks_(options.marks),
        unnamed_(options.unnamed),
        with_modules_(options.with_modules),
        with_lines_(options.with_lines),
        root_name_(options.root),
        unknown_(texts.intern("[unknown]")) {}

  void add_symbol(const stream::SymbolRecord& symbol);
  /// Returns the number of its symbols that were never defined.
  std::size_t add_location(const stream::LocationRecord& location);

  /// The frames at an address.  It has eight bytes, so that the addresses of a large program fit
  /// into a cache.
  struct Place {
    std::uint32_t first = 0;  ///< the frame if there is only one, else its first index in pool_
    std::uint32_t count : 31 = 0;
    std::uint32_t is_made_up : 1 = 0U;
    explicit operator bool() const noexcept { return count > 0; }
  };
  /// Returns the place of an address.  If no LOCATION record has the address, makes up one frame
  /// from the module and the offset in it.  Valid until forget_made_up(), or add_location() of an
  /// address that has a place.
  Place find(std::uint32_t pid, const stream::CallChainEntry& entry,
             const stream::ProcessTable& processes) {
    Place& place = of_process(entry.is_kernel ? stream::kKernelPid : pid)[entry.lookup_address];
    if (!place)
      place = {.first = make_up(pid, entry, processes), .count = 1, .is_made_up = 1};
    return place;
  }
  /// Returns the frames of a place, innermost first.  The next add_location() invalidates the view.
  [[nodiscard]] std::span<const FrameId> frames(const Place& place) const {
    return place.count == 1 ? std::span(&place.first, 1)
                            : std::span<const FrameId>(pool_).subspan(place.first, place.count);
  }
  /// Returns the frame with the thread's name.
  FrameId root(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes);
  /// Threads may have new names from now on.
  void forget_roots() { roots_.clear(); }
  /// Returns a frame that represents no code.
  FrameId word(std::string_view text) { return texts_.intern(text); }
  [[nodiscard]] FrameId unknown() const noexcept { return unknown_; }
  /// Appends the text of a frame.
  void add_names(FrameId frame, std::vector<std::string_view>& names) const {
    names.push_back(texts_[frame]);
  }
  /// Returns the text of the variable at an address; empty if no LOCATION record has the address.
  std::string_view variable(std::uint32_t pid, std::uint64_t address) {
    const Place place = of_process(pid)[address];
    return place && place.is_made_up == 0 ? texts_[frames(place).front()] : std::string_view();
  }

  /// Returns how many LOCATION records had an address that had a place before.
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }
  /// Was a frame made up from a module and an offset, because it had no symbol?
  [[nodiscard]] bool has_made_up() const noexcept { return has_made_up_; }
  /// Did a symbol have a source line?
  [[nodiscard]] bool has_lines() const noexcept { return has_lines_; }
  /// Drops the frames made up from mappings in [start, end) of `pid`.
  void forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end);

 private:
  using ByAddress = AddressMap<Place>;

  ByAddress& of_process(std::uint32_t pid) {
    return last_process_ != nullptr && last_pid_ == pid ? *last_process_ : other_process(pid);
  }
  ByAddress& other_process(std::uint32_t pid);
  [[nodiscard]] std::string named(const stream::SymbolRecord& symbol) const;
  [[nodiscard]] std::string unnamed(std::string_view place, std::string_view module,
                                    std::uint32_t flags) const;
  FrameId make_up(std::uint32_t pid, const stream::CallChainEntry& entry,
                  const stream::ProcessTable& processes);

  folded::FrameTable& texts_;
  Marks marks_;
  UnnamedText unnamed_;
  bool with_modules_;
  bool with_lines_;
  RootName root_name_;
  FrameId unknown_;                                          ///< "[unknown]"
  boost::unordered_flat_map<std::uint64_t, FrameId> roots_;  ///< by pid and tid
  boost::unordered_flat_map<std::uint64_t, FrameId> frame_of_symbol_;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<ByAddress>> processes_;
  std::uint32_t last_pid_ = 0;
  ByAddress* last_process_ =
      nullptr;  ///< of last_pid_: most frames are in the same process as the previous one
  std::uint64_t replaced_ = 0;
  bool has_made_up_ = false;
  bool has_lines_ = false;
  std::vector<FrameId> pool_;  ///< the frames of places with several frames
};

// The facts that a sample stream has about itself, for folded text (folded(5)).

class StreamFacts {
 public:
  /// Takes what `session` has after this record.  `is_inside`: a sample is within --time.
  void observe(const stream::Record& record, const stream::Session& session, bool is_inside);

  /// Returns the lines of the facts that the stream has.  `takes_all_time`: all that threads did
  /// was folded, or what that took on the clock.
  [[nodiscard]] std::string text(const StreamReport& report, const stream::Session& session,
                                 bool takes_all_time, bool is_elapsed) const;

 private:
  std::string command_, host_, version_;
  std::set<std::string> runtimes_;  ///< of functions that have mappings of their own
  std::set<std::string> compiled_;  ///< those of them that have compiled functions
  std::optional<stream::ClockData> clock_;
  std::optional<std::uint64_t> first_ns_;
  std::uint64_t last_ns_ = 0;
  ThreadTimes times_;
};

class StreamCollapser {
 public:
  /// `input` and `counts` must outlive this.  Throws Error if the input is not a sample
  /// stream.
  StreamCollapser(Input& input, const Options& options, folded::FoldedCounts& counts);

  /// Reads to the end and adds every stack to the counts.
  StreamReport fold();

 private:
  using Stacks = StreamStacks<Locations>;

  void take(const Stacks::Taken& taken);
  void add_roots(const stream::Sample& sample);
  void mark_wait(std::size_t begin);
  bool leaves_out(const Stacks::Taken& taken);
  void add(const Stacks::Taken& taken);
  void observe(const stream::Record& record);
  void finish_elapsed();
  [[nodiscard]] ElapsedTime::Part in_range(const ElapsedTime::Part& part) const;
  void count(const StackCount& counted);
  [[nodiscard]] std::uint64_t weight_of(const Stacks::Taken& taken) const;
  [[nodiscard]] bool takes_all_time(const StreamReport& report) const;

  Options options_;
  folded::FoldedCounts& counts_;
  folded::FoldedCounts in_ns_;  ///< sums in nanoseconds; the output has microseconds
  std::string unit_;            ///< of what was added first
  Locations locations_;
  Stacks stacks_;
  StreamFacts facts_;
  std::optional<SlowCalls> slow_calls_;
  std::optional<ElapsedTime> elapsed_;
  std::uint64_t seen_from_ns_ = 0, seen_to_ns_ = 0;  ///< with elapsed_: the time of all samples
  std::optional<RootFrames> roots_;                  ///< of --root
  std::optional<ChildWaits> child_waits_;            ///< of --root tree
  std::uint64_t left_out_samples_ = 0, left_out_ns_ = 0;
  boost::unordered_flat_map<folded::FrameId, folded::FrameId> marked_;  ///< with "_[o]"
  std::vector<folded::FrameId> stack_;  ///< of the current sample, root first
};

}  // namespace pe::fold
