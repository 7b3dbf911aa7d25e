// A profile in the form that other projects' viewers and stores use: functions, places in code,
// stacks as a tree, and sums of the samples of each thread.
//
// The profile keeps each item once and numbers items from 0 in the order of arrival.  The exports
// write these tables as the tables of pprof, speedscope and the Firefox Profiler.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "stackfold/folded_counts.h"
#include "stream/proc/process_table.h"

namespace pe::fold::exports {

using Index = std::uint32_t;
inline constexpr Index kNoIndex = 0xffffffff;

/// Keeps each distinct item once, and numbers them from 0.
template <typename Item, typename Hash>
class Interner {
 public:
  Index intern(const Item& item) {
    const auto [found, is_new] = numbers_.try_emplace(item, static_cast<Index>(items_.size()));
    if (is_new)
      items_.push_back(item);
    return found->second;
  }
  [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }

 private:
  boost::unordered_flat_map<Item, Index, Hash> numbers_;
  std::vector<Item> items_;
};

struct Function {
  std::string_view name;    ///< as in the stream: not cleaned
  std::string_view file;    ///< empty: unknown
  std::string_view module;  ///< a path or a word in brackets; empty: unknown
  std::uint32_t flags = 0;  ///< stream::SymbolFlags
  bool operator==(const Function&) const = default;
};

struct Line {
  Index function = 0;
  std::uint32_t line = 0;  ///< 0: unknown
  bool operator==(const Line&) const = default;
};

/// A mapped part of a file.  All processes that map it share this item, whatever its address there.
struct Mapping {
  std::string_view path;          ///< "/usr/bin/ls", "[kernel.kallsyms]"
  std::string_view build_id;      ///< the raw bytes; empty: unknown
  std::uint64_t file_offset = 0;  ///< bytes, of the mapping's first byte
  std::uint64_t size = 0;         ///< bytes
  bool operator==(const Mapping&) const = default;
};

/// A place in the code.
struct Place {
  Index mapping = kNoIndex;
  Index first_line = 0, line_count = 0;  ///< in lines(): innermost inlined function first
  std::uint64_t address = 0;             ///< in the first recorded process with the mapping
  std::uint32_t flags = 0;               ///< stream::SymbolFlags derived from the module
  bool operator==(const Place&) const = default;
};

struct Thread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm;  ///< its name during the samples: a thread with N names has N items
  bool operator==(const Thread&) const = default;
};

/// A stack: its innermost frame and the stack of the caller.
struct Stack {
  Index caller = kNoIndex;
  Index place = 0;
  bool operator==(const Stack&) const = default;
};

/// An event of the stream, and the meaning of its samples' periods.
struct Event {
  std::string name;
  std::string unit;          ///< of a period: "count", "nanoseconds", "bytes"
  bool by_period = false;    ///< a sample weighs its period; else 1
  std::uint64_t period = 0;  ///< between two samples, in the unit; 0: variable or meaningless
};

/// The sum of equal samples of a thread.  Sums that do not fit stay at the largest number.
struct Sum {
  Index stack = 0, thread = 0, event = 0;
  std::uint64_t samples = 0;
  std::uint64_t period = 0;  ///< in the event's unit
};

/// One sample; kept only where a viewer shows times.
struct TimedSample {
  std::uint64_t time_ns = 0;
  std::uint64_t period = 0;  ///< in the event's unit
  Index stack = 0, thread = 0, event = 0;
};

namespace detail {

inline std::size_t mixed(std::size_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15 ^ (hash >> 29U);
}
struct HashOf {
  static std::size_t text(std::string_view text) { return std::hash<std::string_view>()(text); }
  std::size_t operator()(const Function& f) const {
    return mixed(mixed(text(f.name), text(f.file)), text(f.module) ^ f.flags);
  }
  std::size_t operator()(const Mapping& m) const {
    return mixed(mixed(text(m.path), text(m.build_id)), m.file_offset ^ m.size << 1U);
  }
  std::size_t operator()(const Place& p) const {
    return mixed(mixed(p.mapping, p.address), std::uint64_t{p.first_line} << 32U | p.line_count);
  }
  std::size_t operator()(const Thread& t) const {
    return mixed(text(t.comm), std::uint64_t{t.pid} << 32U | t.tid);
  }
  std::size_t operator()(const Stack& s) const {
    return mixed(0, std::uint64_t{s.caller} << 32U | s.place);
  }
  std::size_t operator()(const std::vector<Line>& lines) const {
    std::size_t hash = 0;
    for (const Line& line : lines)
      hash = mixed(hash, std::uint64_t{line.function} << 32U | line.line);
    return hash;
  }
  std::size_t operator()(const std::tuple<Index, Index, Index>& key) const {
    const auto [stack, thread, event] = key;
    return mixed(mixed(0, std::uint64_t{stack} << 32U | thread), event);
  }
};

}  // namespace detail

class Profile {
 public:
  Index function(std::string_view name, std::string_view file, std::string_view module,
                 std::uint32_t flags);
  /// Returns the mapping and the address in it that represents `avma` of any process.
  std::pair<Index, std::uint64_t> map(const stream::Mapping& mapping, std::uint64_t avma);
  /// Returns the mapping of all kernel addresses.
  Index kernel_mapping();
  /// Adds a place; `lines` is empty if only the address is known.  Sets the place's own fields for
  /// lines.
  Index place(Place place, const std::vector<Line>& lines);
  /// Returns a frame that represents no code, "--".
  Index word(std::string_view text);
  Index thread(std::uint32_t pid, std::uint32_t tid, std::string_view comm);
  Index stack(Index caller, Index place) { return stacks_.intern({caller, place}); }
  Index event(const Event& event);

  void add(const Sum& sum);
  void add(const TimedSample& sample) { timed_.push_back(sample); }
  /// Keeps only sums and samples for which `is_kept(stack, thread)`; returns the number of removed
  /// sums.
  template <typename IsKept>
  std::size_t keep_if(IsKept&& is_kept) {
    std::erase_if(timed_,
                  [&](const TimedSample& sample) { return !is_kept(sample.stack, sample.thread); });
    const std::size_t left_out =
        std::erase_if(sums_, [&](const Sum& sum) { return !is_kept(sum.stack, sum.thread); });
    sum_of_.clear();  // the remaining sums have new numbers
    for (const Sum& sum : sums_)
      sum_of_.try_emplace({sum.stack, sum.thread, sum.event}, static_cast<Index>(sum_of_.size()));
    return left_out;
  }

  [[nodiscard]] const std::vector<Function>& functions() const { return functions_.items(); }
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_.items(); }
  /// Returns the start of a mapping in the first recorded process with it.
  [[nodiscard]] std::uint64_t start_of(Index mapping) const { return mapping_starts_[mapping]; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_.items(); }
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_.items(); }
  [[nodiscard]] const std::vector<Stack>& stacks() const { return stacks_.items(); }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }
  /// In the order of arrival; empty unless the caller requested them.
  [[nodiscard]] const std::vector<TimedSample>& timed() const { return timed_; }
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

  /// The times of the first and last sample in the stream's clock; 0 if samples have no time.
  std::uint64_t first_time_ns = 0, last_time_ns = 0;

 private:
  /// Returns a copy of the text that lives as long as this.
  std::string_view kept(std::string_view text) { return texts_[texts_.intern(text)]; }

  folded::FrameTable texts_;
  Interner<Function, detail::HashOf> functions_;
  Interner<Mapping, detail::HashOf> mappings_;
  std::vector<std::uint64_t> mapping_starts_;
  boost::unordered_flat_map<std::vector<Line>, Index, detail::HashOf> line_lists_;
  std::vector<Line> lines_;
  Interner<Place, detail::HashOf> places_;
  Interner<Thread, detail::HashOf> threads_;
  Interner<Stack, detail::HashOf> stacks_;
  std::vector<Event> events_;
  boost::unordered_flat_map<std::tuple<Index, Index, Index>, Index, detail::HashOf> sum_of_;
  std::vector<Sum> sums_;
  std::vector<TimedSample> timed_;
  bool saturated_ = false;
};

/// Returns the text of a place without lines, as in folded text: "libc.so.6+0x1f", "[unknown]".
std::string unnamed(const Profile& profile, const Place& place);

}  // namespace pe::fold::exports
