// SPDX-License-Identifier: MIT
#include "stackfold/stream_folder.h"

#include <algorithm>

#include "perf/callchain.h"
#include "stackfold/frame_text.h"

namespace pe::fold {

StreamFolder::StreamFolder(io::Input& input, const Options& options, folded::FoldedCounts& counts)
    : options_(options),
      session_(input),
      counts_(counts),
      in_ns_(counts.frames()),
      locations_(counts.frames(), options),
      unknown_(counts.frames().intern("[unknown]")) {}

StreamReport StreamFolder::fold() {
  while (const auto record = session_.next())
    take(*record);
  constexpr std::uint64_t kNsPerUs = 1000;
  counts_.add_divided(in_ns_, kNsPerUs);
  report_.counts = session_.counts();
  report_.damage = session_.damage();
  report_.is_nameless = !has_names_ && locations_.has_made_up();
  report_.is_lineless = has_names_ && !locations_.has_lines();
  for (const perf::Event& event : session_.events().all())
    report_.events.push_back(event.name);
  return report_;
}

void StreamFolder::take(const perf::Record& record) {
  if (const auto& change = session_.mapping_change())
    locations_.forget_made_up(change->pid, change->start, change->end);
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      if (session_.sample())
        take_sample(record.misc);
      break;
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
      roots_.clear();
      break;
    case perf::kRecordSymbol:
      has_names_ = true;
      if (const auto symbol = perf::parse_symbol(record))
        locations_.add_symbol(*symbol);
      else
        ++report_.undefined_symbols;
      break;
    case perf::kRecordLocation:
      if (const auto location = perf::parse_location(record))
        report_.undefined_symbols += locations_.add_location(*location);
      else
        ++report_.undefined_symbols;
      break;
    default:
      break;
  }
}

void StreamFolder::take_sample(std::uint16_t misc) {
  const perf::Sample& sample = *session_.sample();
  const perf::Event& event = *session_.event();
  if (event.name == perf::kWakerEvent && !options_.all_events && options_.event != event.name)
    return take_waker(misc);
  if (!is_chosen(sample, event)) {
    waker_.clear();  // was this one's
    return;
  }
  leaf_first_.clear();
  if ((misc & perf::kMiscUnfinished) != 0 && event.unit == "ns")
    leaf_first_.push_back(counts_.frames().intern("[still waiting]"));
  add_frames(misc);
  leaf_first_.push_back(root_of(sample.pid, sample.tid));
  if (options_.all_events)
    leaf_first_.push_back(counts_.frames().intern(clean_name(event.name)));
  std::reverse(leaf_first_.begin(), leaf_first_.end());  // now root first
  add_waker(sample);
  // Time is added up in nanoseconds and printed in microseconds, as offcputime does.
  const bool is_time = event.unit == "ns" && options_.weight == Weight::kByUnit;
  (is_time ? in_ns_ : counts_).add(leaf_first_, {.whole = weight_of(sample, event)});
}

/// Who ended the wait that comes next.
void StreamFolder::take_waker(std::uint16_t misc) {
  const perf::Sample& sample = *session_.sample();
  leaf_first_.clear();
  add_frames(misc);
  const bool is_interrupt = sample.pid == 0 && sample.tid == 0;
  leaf_first_.push_back(is_interrupt ? counts_.frames().intern("[interrupt]")
                                     : root_of(sample.pid, sample.tid));
  waker_ = leaf_first_;
  waker_time_ns_ = sample.time_ns;
}

/// As in chain graphs: behind "--", upside down, so that the two meet at what they have in common.
void StreamFolder::add_waker(const perf::Sample& woken) {
  if (!waker_.empty() && waker_time_ns_ == woken.time_ns) {
    leaf_first_.push_back(counts_.frames().intern("--"));
    leaf_first_.insert(leaf_first_.end(), waker_.begin(), waker_.end());
  }
  waker_.clear();
}

/// Appends the frames of the sample at hand.
void StreamFolder::add_frames(std::uint16_t misc) {
  const perf::Sample& sample = *session_.sample();
  perf::for_each_frame(sample, misc, [&](const perf::CallChainEntry& entry) {
    const auto frames = locations_.find(sample.pid, entry, session_.processes());
    // Code without frame pointers leads the kernel through data: towers of nothing, of which one
    // says enough.
    if (frames.size() == 1 && frames[0] == unknown_ && !leaf_first_.empty() &&
        leaf_first_.back() == unknown_)
      return;
    leaf_first_.insert(leaf_first_.end(), frames.begin(), frames.end());
  });
}

bool StreamFolder::is_chosen(const perf::Sample& sample, const perf::Event& event) {
  if (report_.folded_event.empty())  // the first declared, not the first that happened
    report_.folded_event = options_.event.value_or(first_event());
  constexpr std::uint64_t kNsPerUs = 1000;
  const auto time_us =
      sample.time_ns == 0 ? std::nullopt : std::optional(sample.time_ns / kNsPerUs);
  return report_.takes_event(options_, event.name) && report_.takes_time(options_, time_us);
}

/// The stream's first event, but for the "dummy" by which perf follows mappings.
std::string StreamFolder::first_event() const {
  const auto& events = session_.events().all();
  const auto first = std::find_if(events.begin(), events.end(), [](const perf::Event& event) {
    return !event.name.starts_with("dummy");
  });
  return first == events.end() ? session_.event()->name : first->name;
}

std::uint64_t StreamFolder::weight_of(const perf::Sample& sample, const perf::Event& event) const {
  const bool is_ours = event.unit == "ns" || event.unit == "bytes" || event.unit == "allocations";
  const bool by_period =
      options_.weight == Weight::kPeriod || (options_.weight == Weight::kByUnit && is_ours);
  return by_period ? sample.period : 1;
}

FrameId StreamFolder::root_of(std::uint32_t pid, std::uint32_t tid) {
  const auto [root, is_new] = roots_.try_emplace(std::uint64_t{pid} << 32U | tid);
  if (is_new)
    root->second = counts_.frames().intern(
        root_text(session_.processes().comm(pid, tid), pid, tid, options_.root));
  return root->second;
}

}  // namespace pe::fold
