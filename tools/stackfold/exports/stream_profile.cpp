// SPDX-License-Identifier: MIT
#include "stackfold/exports/stream_profile.h"

#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "stackfold/frame_text.h"
#include "stream/records/event.h"

namespace pe::fold::exports {

Places::Places(Profile& profile) : profile_(profile), unknown_(profile.place({}, {})) {}

void Places::add_symbol(const stream::SymbolRecord& symbol) {
  has_lines_ = has_lines_ || symbol.line > 0;
  // Profiles do not distinguish frames that returned by a tail call.
  const std::uint32_t flags = symbol.flags & ~std::uint32_t{stream::kSymbolTailCall};
  lines_of_symbols_[symbol.id] = {profile_.function(symbol.name, symbol.file, symbol.module, flags),
                                  symbol.line};
}

std::size_t Places::add_location(const stream::LocationRecord& location) {
  std::size_t undefined = 0;
  Known known;
  for (std::size_t i = 0; i < location.symbol_ids.size(); ++i) {
    const auto line = lines_of_symbols_.find(location.symbol_ids[i]);
    if (line == lines_of_symbols_.end())
      ++undefined;
    else
      known.lines.push_back(line->second);
  }
  if (known.lines.empty())
    return undefined;
  Known& before = processes_[location.pid][location.address];
  replaced_ += before.place != kNoIndex ? 1 : 0;
  before = std::move(known);
  return undefined;
}

Index Places::find(std::uint32_t pid, const stream::CallChainEntry& entry,
                   const stream::ProcessTable& processes) {
  const std::uint32_t owner = entry.is_kernel ? stream::kKernelPid : pid;
  Known& known = processes_[owner][entry.lookup_address];
  if (known.place == kNoIndex)
    known.place = make(pid, entry, known.lines, processes);
  return known.place;
}

void Places::add_names(Index place, std::vector<std::string_view>& names) const {
  const exports::Place& found = profile_.places()[place];
  for (Index n = 0; n < found.line_count; ++n)
    names.push_back(profile_.functions()[profile_.lines()[found.first_line + n].function].name);
}

std::string_view Places::variable(std::uint32_t pid, std::uint64_t address) {
  const auto& lines = processes_[pid][address].lines;
  return lines.empty() ? std::string_view() : profile_.functions()[lines.front().function].name;
}

Index Places::make(std::uint32_t pid, const stream::CallChainEntry& entry,
                   const std::vector<Line>& lines, const stream::ProcessTable& processes) {
  has_made_up_ = has_made_up_ || lines.empty();
  const bool is_inserted =
      entry.lookup_address >= stream::kTailCallStart && entry.lookup_address < stream::kTailCallEnd;
  const std::uint64_t address = entry.lookup_address - (is_inserted ? stream::kTailCallStart : 0);
  exports::Place place{.address = address};
  if (entry.is_kernel) {
    place.mapping = profile_.kernel_mapping();
    place.flags = stream::kSymbolKernel;
  } else if (const stream::Mapping* mapping = processes.find(pid, address)) {
    std::tie(place.mapping, place.address) = profile_.map(*mapping, address);
    place.flags = stream::kSymbolUnresolved | module_flags(mapping->file->path);
  } else if (lines.empty()) {
    return unknown_;
  }
  return profile_.place(place, lines);
}

void Places::forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end) {
  const auto process = processes_.find(pid);
  if (process == processes_.end())
    return;
  boost::unordered::erase_if(process->second, [&](auto& item) {
    const bool is_inside = item.first >= start && item.first < end;
    if (is_inside)
      item.second.place = kNoIndex;  // its mapping changed, even if its symbols did not
    return is_inside && item.second.lines.empty();
  });
}

Index Places::root(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes) {
  return word(root_text(processes.comm(pid, tid), pid, tid, RootName::kComm));
}

Index Places::thread(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes) {
  const auto [thread, is_new] = threads_.try_emplace(std::uint64_t{pid} << 32U | tid);
  if (is_new)
    thread->second = profile_.thread(pid, tid, processes.comm(pid, tid));
  return thread->second;
}

namespace {

using Stacks = StreamStacks<Places>;

std::string unit_of(const stream::Event& event) {
  if (event.unit == "bytes" || event.unit == "allocations")
    return event.unit == "bytes" ? "bytes" : "count";
  return event.unit == "ns" || stream::is_clock(event.attr) ? "nanoseconds" : "count";
}

Event describe(const stream::Event& event) {
  std::uint64_t period = 0;
  if (!is_weighed_by_period(event)) {
    if (event.attr.freq == 0)
      period = event.attr.sample_period;
    else if (stream::is_clock(event.attr) && event.attr.sample_freq > 0)
      period = kNsPerSecond / event.attr.sample_freq;
  }
  return {.name = event.name,
          .unit = unit_of(event),
          .by_period = is_weighed_by_period(event),
          .period = period};
}

class StreamProfile {
 public:
  StreamProfile(Input& input, const Options& options, bool with_times, Profile& profile)
      : profile_(profile),
        places_(profile),
        stacks_(input, options, places_),
        with_times_(with_times) {}

  StreamReport read() {
    return stacks_.read([this](const Stacks::Taken& taken) { take(taken); });
  }

 private:
  void take(const Stacks::Taken& taken) {
    const stream::Sample& sample = taken.sample;
    const Event event = describe(taken.event);
    const Index thread = places_.thread(sample.pid, sample.tid, stacks_.session().processes());
    const Index stack = stack_of(taken);
    const Index number = profile_.event(event);
    profile_.add(Sum{
        .stack = stack, .thread = thread, .event = number, .samples = 1, .period = sample.period});
    if (with_times_)
      profile_.add(TimedSample{.time_ns = sample.time_ns,
                               .period = sample.period,
                               .stack = stack,
                               .thread = thread,
                               .event = number});
    if (sample.time_ns == 0)
      return;
    if (profile_.first_time_ns == 0)
      profile_.first_time_ns = sample.time_ns;
    profile_.first_time_ns = std::min(profile_.first_time_ns, sample.time_ns);
    profile_.last_time_ns = std::max(profile_.last_time_ns, sample.time_ns);
  }

  Index stack_of(const Stacks::Taken& taken) {
    Index stack = kNoIndex;
    if (taken.root_first.empty())
      taken.root_first.push_back(places_.unknown());
    for (const Index place : taken.root_first)
      stack = profile_.stack(stack, place);
    // As in chain graphs, the waker's stack follows "--" upside down.
    if (!taken.waker.empty())
      stack = profile_.stack(stack, places_.word("--"));
    for (const Index place : taken.waker)
      stack = with_upside_down(stack, place);
    return stack;
  }

  /// Appends a place to an upside-down stack.  A place lists inlined functions from callee to
  /// caller, the order of this stack, so each function becomes a place of its own.
  Index with_upside_down(Index stack, Index number) {
    const Place place = profile_.places()[number];
    if (place.line_count < 2)
      return profile_.stack(stack, number);
    for (Index n = 0; n < place.line_count; ++n) {
      const Line line = profile_.lines()[place.first_line + n];
      stack = profile_.stack(stack, profile_.place(place, {line}));
    }
    return stack;
  }

  Profile& profile_;
  Places places_;
  Stacks stacks_;
  bool with_times_;
};

}  // namespace

StreamReport add_stream(Input& input, const Options& options, bool with_times, Profile& profile) {
  return StreamProfile(input, options, with_times, profile).read();
}

}  // namespace pe::fold::exports
