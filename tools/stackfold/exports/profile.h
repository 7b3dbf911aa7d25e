// A profile as viewers and stores of other projects have it: functions, places in code, stacks
// as a tree, and what the samples of each thread add up to.
//
// Every thing is kept once and has a number, which counts up from 0 as things come: the tables of
// pprof, speedscope and the Firefox Profiler are these tables, written down.
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

#include "folded/frame_table.h"
#include "stream/proc/process_table.h"

namespace pe::fold::exports {

using Index = std::uint32_t;
inline constexpr Index kNone = 0xffffffff;

/// Things without which nothing else is the same, kept once.
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
  std::string_view name;    ///< as the stream has it: not cleaned
  std::string_view file;    ///< empty: not known
  std::string_view module;  ///< the same; a path or a word in brackets
  std::uint32_t flags = 0;  ///< stream::SymbolFlags
  bool operator==(const Function&) const = default;
};

struct Line {
  Index function = 0;
  std::uint32_t line = 0;  ///< 0: not known
  bool operator==(const Line&) const = default;
};

/// A file's part that is mapped: all processes that have it share this one, wherever it is in them.
struct Mapping {
  std::string_view path;          ///< "/usr/bin/ls", "[kernel.kallsyms]"
  std::string_view build_id;      ///< its bytes; empty: not known
  std::uint64_t file_offset = 0;  ///< bytes, of `start`
  std::uint64_t size = 0;         ///< bytes
  bool operator==(const Mapping&) const = default;
};

/// A place in the code.
struct Place {
  Index mapping = kNone;
  Index first_line = 0, line_count = 0;  ///< in lines(): innermost inlined function first
  std::uint64_t address = 0;             ///< as in the first process that was seen in the mapping
  std::uint32_t flags = 0;               ///< stream::SymbolFlags, of one that has no lines
  bool operator==(const Place&) const = default;
};

struct Thread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm;  ///< at the time of its samples: a thread can be here by several names
  bool operator==(const Thread&) const = default;
};

/// A stack: its innermost frame and the stack that called it.
struct Stack {
  Index caller = kNone;
  Index place = 0;
  bool operator==(const Stack&) const = default;
};

/// An event of the stream, and the numbers that its samples have.
struct Event {
  std::string name;
  std::string unit;          ///< "count", "nanoseconds", "bytes": of what a period is in
  bool by_period = false;    ///< is that what a sample weighs?  Else each weighs 1
  std::uint64_t period = 0;  ///< between two samples, in the unit; 0: they differ, or mean nothing
};

/// What equal samples of a thread add up to; sums that do not fit stay at the largest number.
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
  /// The mapping and, in it, the address that stands for `avma` of any process.
  std::pair<Index, std::uint64_t> map(const stream::Mapping& mapping, std::uint64_t avma);
  /// The kernel's, for any address in it.
  Index kernel_mapping();
  /// `lines` may be empty: nothing is known but the address.  `place`'s own line numbers are set.
  Index place(Place place, const std::vector<Line>& lines);
  /// A frame that stands for no code, "--".
  Index word(std::string_view text);
  Index thread(std::uint32_t pid, std::uint32_t tid, std::string_view comm);
  Index stack(Index caller, Index place) { return stacks_.intern({caller, place}); }
  Index event(const Event& event);

  void add(const Sum& sum);
  void add(const TimedSample& sample) { timed_.push_back(sample); }
  /// Keeps only sums and samples for which `is_kept(stack, thread)`; returns how many sums went.
  template <typename IsKept>
  std::size_t keep_if(IsKept&& is_kept) {
    std::erase_if(timed_,
                  [&](const TimedSample& sample) { return !is_kept(sample.stack, sample.thread); });
    const std::size_t left_out =
        std::erase_if(sums_, [&](const Sum& sum) { return !is_kept(sum.stack, sum.thread); });
    sum_of_.clear();  // those that are left have other numbers now
    for (const Sum& sum : sums_)
      sum_of_.try_emplace({sum.stack, sum.thread, sum.event}, static_cast<Index>(sum_of_.size()));
    return left_out;
  }

  [[nodiscard]] const std::vector<Function>& functions() const { return functions_.items(); }
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_.items(); }
  /// Where a mapping began in the first process that was seen to have it.
  [[nodiscard]] std::uint64_t start_of(Index mapping) const { return mapping_starts_[mapping]; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_.items(); }
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_.items(); }
  [[nodiscard]] const std::vector<Stack>& stacks() const { return stacks_.items(); }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }
  /// In the order in which they came; empty unless they were asked for.
  [[nodiscard]] const std::vector<TimedSample>& timed() const { return timed_; }
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

  /// From the first sample to the last, in the stream's clock; 0 where samples have no time.
  std::uint64_t first_time_ns = 0, last_time_ns = 0;

 private:
  /// The same text, which lives as long as this.
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

/// How a place without lines is called, as folded text has it: "libc.so.6+0x1f", "[unknown]".
std::string unnamed(const Profile& profile, const Place& place);

}  // namespace pe::fold::exports
