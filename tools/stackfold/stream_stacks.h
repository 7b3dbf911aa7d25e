// Reads the stacks of a sample stream, one sample after the other.
//
// `Places` gives each address a number: of a frame's text for folded text, or of a place in the
// code for an export.  This file has the code that both share: it chooses samples, decides which
// events weigh by period, and finds the thread that ended a wait.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "stackfold/options.h"
#include "stackfold/slow_calls.h"
#include "stackfold/text_report.h"
#include "stream/records/callchain.h"
#include "stream/session.h"

namespace pe::fold {

// Names the locks that threads wait for: "[mutex g_lock+0x10]".
//
// A lock is a futex (futex(2)), which the kernel knows only by its address.  The functions that
// wait show its kind.  The variable at the address gives the name.  A lock in other memory, mostly
// the heap, is named by the function that was first seen waiting for it.
//
// This is a heuristic.  Functions are recognised by their names (glibc, musl, libstdc++, Rust, Go).
// Memory that is freed and used for another lock of the same kind keeps the name of the first.

class LockNames {
 public:
  /// Returns the text of a lock's frame.  `address` is as in samples of offcpu --locks.  `variable`
  /// is what is at that address; empty if that is unknown.  `leaf_first` has the texts of the
  /// frames of the thread that waits.
  std::string name(std::uint32_t pid, std::uint64_t address, std::string_view variable,
                   std::span<const std::string_view> leaf_first);
  /// Whether it is known when a thread that held what has this name released it: only the release
  /// of a mutex that was waited for is always a system call.
  static bool can_be_held(std::string_view name);

 private:
  /// By process, address and kind.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::string_view>, std::string> first_waits_;
};

/// The result of reading a stream, for the closing line.
struct StreamReport : SampleChoice {
  stream::Counts counts;
  std::uint64_t undefined_symbols = 0;  ///< symbols that LOCATIONs lack, and malformed records
  std::vector<std::string> events;      ///< all events that the stream declares
  bool is_nameless = false;             ///< the stream has addresses but no symbol
  bool is_lineless = false;             ///< the stream has symbols but no source line
  std::string damage;                   ///< why the input ended early; empty if it did not
  std::uint64_t folded_samples = 0;
  std::uint64_t unholdable = 0;  ///< samples of kHeldEvent that are not of locks
  /// The weight of these, if we walked them: their number, or for waits their time.
  double complete_stacks = 0, incomplete_stacks = 0;
  std::uint64_t child_wait_ns = 0;      ///< waits for children, left out of --root tree
  std::optional<SlowCallReport> calls;  ///< with --span or --longer
  std::string facts;                    ///< lines of folded text; empty for exports
  std::string unit;  ///< of the counts: "samples", "us", "bytes" ...; empty: no sample, an export
};

/// Does the event's unit show that a period is a weight?  Only this project's recorders declare
/// such units.  perf declares "msec" for its clock events, whose period is only the distance
/// between samples.
inline bool is_weighed_by_period(const stream::Event& event) {
  const std::string_view unit = event.unit;  // compares sizes first
  return unit == "ns" || unit == "bytes" || unit == "allocations" || unit == "pages" ||
         unit == "units";
}

/// Throws Error: the event has no such field, of the size of a number.
[[noreturn]] void refuse_weight(const stream::Event& event, const std::string& field);

/// Returns the time when what a sample counts began: a wait is before its sample.  A wait that is
/// older than its clock is damage, and has no length.
inline std::uint64_t begin_of(const stream::Sample& sample, const stream::Event& event) {
  const bool is_wait = std::string_view(event.unit) == "ns" && sample.period <= sample.time_ns;
  return is_wait ? sample.time_ns - sample.period : sample.time_ns;
}

/// `Places` gives numbers to the code at addresses (Locations is one):
///   void add_symbol(const stream::SymbolRecord&);
///   std::size_t add_location(const stream::LocationRecord&);        number of undefined symbols
///   Place find(pid, const stream::CallChainEntry&, const stream::ProcessTable&);
///   std::span<const std::uint32_t> frames(const Place&) const;          innermost first
///   std::uint64_t replaced() const;         grows if add_location() makes such a Place invalid
///   void forget_made_up(pid, start, end);
///   std::uint32_t word(std::string_view);   a frame that represents no code, "--"
///   std::uint32_t unknown() const;          the frame of an unknown place
///   void add_names(std::uint32_t, std::vector<std::string_view>&) const;  of a frame, innermost
///   first std::string_view variable(pid, address);                 empty if it is unknown
///   std::uint32_t root(pid, tid, const stream::ProcessTable&);      a thread's name
///   void forget_roots();                    threads may have new names from now on
///   bool has_made_up() const;  bool has_lines() const;
template <typename Places>
class StreamStacks {
 public:
  /// A sample that was chosen.  The next call invalidates the views.
  struct Taken {
    const stream::Sample& sample;
    const stream::Event& event;
    std::vector<std::uint32_t>& root_first;  ///< its frames, which the callee may change
    /// The stack of the thread that ended the wait: leaf first, the thread's name last.  After a
    /// frame "--", the stack of the thread that ended a wait of that thread, and so on.  Empty if
    /// unknown.
    std::span<const std::uint32_t> waker;
    bool blames_waker = false;  ///< the waker's stack comes first in folded text
  };

  /// `input` and `places` must outlive this.  Throws Error if the input is not a sample
  /// stream.
  StreamStacks(Input& input, Options options, Places& places)
      : options_(std::move(options)), session_(input), places_(places) {
    if (!options_.weight_field.empty())
      session_.weigh_by(options_.weight_field);
  }

  /// Reads to the end; calls `take(Taken)` for every sample of a requested event and time.
  /// Calls `observe(record)` before that for every record, which session() has applied.
  template <typename Take, typename Observe>
  StreamReport read(Take&& take, Observe&& observe) {
    while (const auto record = session_.next()) {
      observe(*record);
      if (const std::optional<Taken> taken = apply(*record))
        take(*taken);
    }
    report_.counts = session_.counts();
    report_.damage = session_.damage();
    report_.is_nameless = !has_names_ && places_.has_made_up();
    report_.is_lineless = has_names_ && !places_.has_lines();
    for (const stream::Event& event : session_.events().all())
      report_.events.push_back(event.name);
    return report_;
  }

  template <typename Take>
  StreamReport read(Take&& take) {
    return read(take, [](const stream::Record&) {});
  }

  [[nodiscard]] const stream::Session& session() const noexcept { return session_; }

  /// Is a time within --time?
  [[nodiscard]] bool holds(std::uint64_t time_ns) {
    return report_.holds(options_, time_ns / kNsPerUs);
  }

  /// Returns the range of --time; nullopt without one, or before the first sample.
  [[nodiscard]] const std::optional<stream::TimeBounds>& bounds() const noexcept {
    return report_.bounds;
  }

  /// Are samples of this event folded?  Without --event, only those of the first declared event.
  [[nodiscard]] bool folds(const stream::Event& event) {
    choose_event(event);
    return report_.would_take(options_, event.name);
  }

 private:
  std::optional<Taken> apply(const stream::Record& record) {
    if (const auto feature = stream::parse_feature(record))
      if (const auto clock = stream::parse_clock_data(*feature))
        report_.times.clock = clock;
    if (const auto& change = session_.mapping_change()) {
      places_.forget_made_up(change->pid, change->start, change->end);
      chains_.forget();
    }
    switch (record.type) {
      case PERF_RECORD_SAMPLE:
        if (session_.sample())
          return apply_sample(record.misc);
        break;
      case PERF_RECORD_COMM:
      case PERF_RECORD_FORK:
        places_.forget_roots();
        break;
      case stream::kRecordSymbol:
        has_names_ = true;
        if (const auto symbol = stream::parse_symbol(record))
          places_.add_symbol(*symbol);
        else
          ++report_.undefined_symbols;
        break;
      case stream::kRecordLocation:
        add_location(record);
        break;
      default:
        break;
    }
    return std::nullopt;
  }

  void add_location(const stream::Record& record) {
    const auto location = stream::parse_location(record);
    const std::uint64_t replaced = places_.replaced();
    report_.undefined_symbols += location ? places_.add_location(*location) : 1;
    if (places_.replaced() != replaced)
      chains_.forget();
  }

  std::optional<Taken> apply_sample(std::uint16_t misc) {
    const stream::Sample& sample = *session_.sample();
    const stream::Event& event = *session_.event();
    const std::string_view name = event.name;
    const bool is_of_holder = name == stream::kHolderEvent;
    if (is_of_holder || name == stream::kWakerEvent || name == stream::kEarlierWakerEvent) {
      if (!options_.all_events && options_.event != event.name) {
        keep_waker(misc);
        blames_waker_ = is_of_holder;
        return std::nullopt;
      }
      waker_.clear();  // wakers are shown alone
    }
    // Entries and returns of calls are marks, not samples.
    if (options_.event != event.name && stream::span_event(event.name))
      return std::nullopt;
    if (!is_chosen(sample, event)) {
      waker_.clear();  // it belonged to this sample
      return std::nullopt;
    }
    if (!options_.weight_field.empty() && !event.weight)
      refuse_weight(event, options_.weight_field);
    if (waker_time_ns_ != sample.time_ns)
      waker_.clear();
    root_first_ = frames_of_sample(misc);
    if (event.unit == "ns" && !add_wait(sample, event, misc))
      return std::nullopt;
    current_waker_.swap(waker_);
    ++report_.folded_samples;
    const double weight = is_weighed_by_period(event) ? static_cast<double>(sample.period) : 1;
    report_.complete_stacks += (misc & stream::kMiscComplete) != 0 ? weight : 0;
    report_.incomplete_stacks += (misc & stream::kMiscIncomplete) != 0 ? weight : 0;
    waker_.clear();
    return Taken{sample, event, root_first_, current_waker_, blames_waker_};
  }

  /// Keeps the stack of the thread that ended the next sample's wait.  A waker of the same time
  /// that was kept before ended a wait of this one.
  void keep_waker(std::uint16_t misc) {
    const stream::Sample& sample = *session_.sample();
    constexpr unsigned kMaxWakers = 4;
    if (waker_time_ns_ != sample.time_ns || waker_.empty() || ++wakers_ > kMaxWakers) {
      waker_.clear();
      wakers_ = 1;
    }
    std::vector<std::uint32_t> nearer;
    const bool has_stack = sample.pid != 0 || sample.tid == stream::kEndedByInterrupt;
    if (has_stack) {
      const auto& root_first = frames_of_sample(misc);
      nearer.assign(root_first.rbegin(), root_first.rend());
    }
    nearer.push_back(root_of_waker(sample));
    if (!waker_.empty())
      nearer.push_back(places_.word("--"));
    waker_.insert(waker_.begin(), nearer.begin(), nearer.end());
    waker_time_ns_ = sample.time_ns;
  }

  std::uint32_t root_of_waker(const stream::Sample& sample) {
    if (sample.pid != 0)
      return places_.root(sample.pid, sample.tid, session_.processes());
    switch (sample.tid) {
      case stream::kEndedByInterrupt:
        return places_.word("[interrupt]");
      case stream::kEndedByTimeout:
        return places_.word("[timeout]");
      case stream::kEndedBySignal:
        return places_.word("[signal]");
      default:
        return places_.word("[unknown]");
    }
  }

  /// Adds the frame of the sample's lock; false if a sample of that event has none.
  bool add_lock(const stream::Sample& sample, std::string_view event) {
    const std::string lock = lock_of(sample);
    if (event == stream::kHeldEvent && !LockNames::can_be_held(lock)) {
      ++report_.unholdable;
      return false;
    }
    root_first_.push_back(places_.word(lock));
    return true;
  }

  /// Adds the frames of what the thread waited for; false if the sample is to be left out.
  bool add_wait(const stream::Sample& sample, const stream::Event& event, std::uint16_t misc) {
    if (sample.data_address != 0 && !add_lock(sample, event.name))
      return false;
    if (event.name != stream::kCpuEvent && (event.attr.sample_type & PERF_SAMPLE_WEIGHT) != 0)
      add_kind(sample.weight);
    if ((misc & stream::kMiscUnfinished) != 0)
      root_first_.push_back(places_.word("[still waiting]"));
    return true;
  }

  /// Adds the frame of what the thread waited for, if the sample knows it.
  void add_kind(std::uint64_t kind) {
    constexpr std::array<std::string_view, stream::kLostSilence + 1> kNames = {
        "[other wait]", "[waiting for a CPU]", "[lock]",          "[sleep]",
        "[I/O]",        "[page fault]",        "[child process]", "[lost]"};
    if (kind < kNames.size())
      root_first_.push_back(places_.word(std::string(kNames.at(static_cast<std::size_t>(kind))) +
                                         (options_.marks.wait ? "_[o]" : "")));
  }

  /// Returns the name of the lock for which the thread waited.
  std::string lock_of(const stream::Sample& sample) {
    constexpr std::size_t kMostFrames = 32;  // of them some are inside the lock's own functions
    std::vector<std::string_view> leaf_first;
    for (auto frame = root_first_.rbegin() + static_cast<std::ptrdiff_t>(kernel_frames_);
         frame != root_first_.rend() && leaf_first.size() < kMostFrames; ++frame)
      places_.add_names(*frame, leaf_first);
    const std::string_view variable =
        places_.variable(sample.pid, sample.data_address & ~stream::kEndOfThreadBit);
    return locks_.name(sample.pid, sample.data_address, variable, leaf_first);
  }

  /// Returns the frames of the current sample.
  const std::vector<std::uint32_t>& frames_of_sample(std::uint16_t misc) {
    const stream::Sample& sample = *session_.sample();
    auto& chain = chains_.follow(sample, misc, [&](const stream::CallChainEntry& entry) {
      return places_.find(sample.pid, entry, session_.processes());
    });
    auto& [root_first, sizes] = chain.extra;
    const auto& places = chain.found;
    // Whether the innermost shared frame is shown depends on the next one.
    const std::size_t kept = chain.shared > 0 ? chain.shared - 1 : 0;
    root_first.resize(kept > 0 ? sizes[kept - 1] : 0);
    sizes.resize(kept);
    for (std::size_t i = kept; i < places.size(); ++i) {
      const auto frames = places_.frames(places[i]);
      // Where code has no frame pointers, the kernel follows data and records long runs of unknown
      // addresses.  The innermost one represents the whole run.
      const bool is_left_out = frames.size() == 1 && frames[0] == places_.unknown() &&
                               i + 1 < places.size() &&
                               places_.frames(places[i + 1]).back() == places_.unknown();
      if (!is_left_out)
        root_first.insert(root_first.end(), frames.rbegin(), frames.rend());
      sizes.push_back(root_first.size());
    }
    const std::size_t in_kernel = std::min(kernel_entries(sample), sizes.size());
    const std::size_t of_user = in_kernel == sizes.size() ? 0 : sizes[sizes.size() - 1 - in_kernel];
    kernel_frames_ = root_first.size() - of_user;
    return root_first;
  }

  /// Returns how many entries of the sample's call chain are of the kernel, which come first.
  static std::size_t kernel_entries(const stream::Sample& sample) {
    const stream::U64View& chain = sample.callchain;
    std::size_t end = chain.size() > 0 && chain[0] == PERF_CONTEXT_KERNEL ? 1 : 0;
    while (end > 0 && end < chain.size() && chain[end] < PERF_CONTEXT_MAX)
      ++end;
    return end > 0 ? end - 1 : 0;
  }

  bool is_chosen(const stream::Sample& sample, const stream::Event& event) {
    choose_event(event);
    const auto time_us =
        sample.time_ns == 0 ? std::nullopt : std::optional(sample.time_ns / kNsPerUs);
    // Exports keep events apart; silences are parts of waits.
    const bool takes_all =
        options_.to != nullptr && !options_.event && event.name != stream::kSilenceEvent;
    // Of elapsed time, the part in the range counts.
    const auto begin_us = time_us && options_.weight == Weight::kElapsed && options_.time
                              ? std::optional(begin_of(sample, event) / kNsPerUs)
                              : std::nullopt;
    return (takes_all || report_.takes_event(options_, event.name)) &&
           report_.takes_time(options_, time_us, begin_us);
  }

  /// Chooses the first declared event, not the first sampled; `event` if none was declared.
  void choose_event(const stream::Event& event) {
    if (report_.folded_event.empty())
      report_.folded_event = options_.event.value_or(first_event(event));
  }

  /// Returns the stream's first event that has the field of --weight, except the "dummy" with which
  /// perf records mappings.
  [[nodiscard]] std::string first_event(const stream::Event& otherwise) const {
    const auto& events = session_.events().all();
    const auto first = std::find_if(events.begin(), events.end(), [&](const stream::Event& event) {
      return !event.name.starts_with("dummy") && !stream::span_event(event.name) &&
             (options_.weight_field.empty() || event.weight);
    });
    return first == events.end() ? otherwise.name : first->name;
  }

  Options options_;
  stream::Session session_;
  Places& places_;
  /// A thread's last stack, root first.
  struct LastStack {
    std::vector<std::uint32_t> root_first;
    std::vector<std::size_t> sizes;  ///< of root_first after each entry of the chain
  };
  stream::ChainMemory<typename Places::Place, LastStack> chains_;
  bool has_names_ = false;                 ///< a SYMBOL was read
  std::vector<std::uint32_t> root_first_;  ///< of the current sample
  std::vector<std::uint32_t> waker_;  ///< the stack that woke the next sample's thread, leaf first
  std::vector<std::uint32_t> current_waker_;
  std::size_t kernel_frames_ = 0;  ///< of the last frames_of_sample()
  unsigned wakers_ = 0;            ///< number of stacks in waker_
  bool blames_waker_ = false;      ///< the last waker is a holder
  LockNames locks_;
  std::uint64_t waker_time_ns_ = 0;  ///< time of waker_; the next sample must have the same time
  StreamReport report_;
};

}  // namespace pe::fold
