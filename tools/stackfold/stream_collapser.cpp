// SPDX-License-Identifier: MIT
#include "stackfold/stream_collapser.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <limits>

#include "base/characters.h"
#include "base/cli/version.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "folded/facts.h"
#include "stackfold/frame_text.h"
#include "stream/script_mapping.h"

namespace pe::fold {
namespace {

/// Returns where a name ends, before its mark "_[k]", if it has one.
std::size_t end_of_name(std::string_view text) {
  constexpr std::size_t kMarkBytes = 4;
  const std::size_t at = text.size() - std::min(text.size(), kMarkBytes);
  return text.substr(at).starts_with("_[") && text.ends_with(']') ? at : text.size();
}

std::string_view without_mark(std::string_view text) { return text.substr(0, end_of_name(text)); }

}  // namespace

void Locations::add_symbol(const stream::SymbolRecord& symbol) {
  const bool is_unnamed = (symbol.flags & stream::kSymbolUnresolved) != 0;
  std::string text = is_unnamed ? unnamed(symbol.name, symbol.module, symbol.flags) : named(symbol);
  has_lines_ = has_lines_ || symbol.line > 0;
  if (with_lines_ && symbol.line > 0)  // a mark stays at the end, where others look for it
    text.insert(end_of_name(text), source_text(symbol.file, symbol.line));
  frame_of_symbol_[symbol.id] = texts_.intern(text);
}

std::size_t Locations::add_location(const stream::LocationRecord& location) {
  const std::size_t begin = pool_.size();
  std::size_t undefined = 0;
  for (std::size_t i = 0; i < location.symbol_ids.size(); ++i) {
    const auto frame = frame_of_symbol_.find(location.symbol_ids[i]);
    if (frame == frame_of_symbol_.end())
      ++undefined;
    else
      pool_.push_back(frame->second);
  }
  const std::size_t count = pool_.size() - begin;
  if (count == 0)
    return undefined;
  Place place{.first = static_cast<std::uint32_t>(begin),
              .count = static_cast<std::uint32_t>(count)};
  if (count == 1) {
    place.first = pool_.back();
    pool_.pop_back();
  }
  Place& known = of_process(location.pid)[location.address];
  replaced_ += known ? 1 : 0;
  known = place;
  return undefined;
}

void Locations::forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end) {
  const auto process = processes_.find(pid);
  if (process == processes_.end())
    return;
  process->second->erase_if([&](std::uint64_t address, const Place& place) {
    return place.is_made_up != 0 && address >= start && address < end;
  });
}

FrameId Locations::root(std::uint32_t pid, std::uint32_t tid,
                        const stream::ProcessTable& processes) {
  const auto [root, is_new] = roots_.try_emplace(std::uint64_t{pid} << 32U | tid);
  if (is_new)
    root->second = word(root_text(processes.comm(pid, tid), pid, tid, root_name_));
  return root->second;
}

Locations::ByAddress& Locations::other_process(std::uint32_t pid) {
  auto& process = processes_[pid];
  if (!process)
    process = std::make_unique<ByAddress>();
  last_pid_ = pid;
  last_process_ = process.get();
  return *process;
}

std::string Locations::named(const stream::SymbolRecord& symbol) const {
  std::string text = frame_text(symbol.name, symbol.flags, marks_);
  if (with_modules_)
    text.insert(0, module_text(symbol.module, (symbol.flags & stream::kSymbolJit) != 0));
  return text;
}

/// Returns the text of a frame without a symbol, "libc.so.6+0x1f", in the form of --unnamed.
std::string Locations::unnamed(std::string_view place, std::string_view module,
                               std::uint32_t flags) const {
  std::string text;
  if (unnamed_ == UnnamedText::kPlace)
    text = place;
  else if (unnamed_ == UnnamedText::kModule && module.starts_with('['))
    text = module;  // "[kernel.kallsyms]", "[vdso]"
  else if (unnamed_ == UnnamedText::kModule && module.starts_with('/') &&
           !module.starts_with("//") && (flags & stream::kSymbolJit) == 0)
    text = fmt::format("[{}]", file_name(module));
  return frame_text(text, flags, marks_);  // "[unknown]" if `text` is empty
}

FrameId Locations::make_up(std::uint32_t pid, const stream::CallChainEntry& entry,
                           const stream::ProcessTable& processes) {
  has_made_up_ = true;
  if (entry.is_kernel)
    return texts_.intern(unnamed(fmt::format("[kernel]+{:#x}", entry.lookup_address),
                                 "[kernel.kallsyms]", stream::kSymbolKernel));
  const stream::Mapping* mapping = processes.find(pid, entry.lookup_address);
  if (mapping == nullptr)
    return texts_.intern("[unknown]");
  if (const auto script = stream::parse_script_path(mapping->file->path))
    return texts_.intern(frame_text(script->name, stream::script_flags(script->kind), marks_));
  const std::uint64_t file_offset = entry.lookup_address - mapping->start + mapping->file_offset;
  const std::uint32_t flags = stream::kSymbolUnresolved | module_flags(mapping->file->path);
  const std::string& path = mapping->file->path;
  return texts_.intern(unnamed(unnamed_text(path, file_offset), path, flags));
}

namespace {

/// Returns "997 Hz" for an event that was sampled at a rate; empty for others.
std::string rate_of(const stream::Event& event) {
  if (event.attr.freq != 0)
    return fmt::format("{} Hz", event.attr.sample_freq);
  if (!stream::is_clock(event.attr) || event.attr.sample_period == 0)
    return {};
  return fmt::format("{:.0f} Hz", static_cast<double>(kNsPerSecond) /
                                      static_cast<double>(event.attr.sample_period));
}

/// Returns "2026-11-25T09:06:33.123Z (first sample)"; empty for a time that has no date.  The words
/// behind the time keep programs that add up the last words of lines from adding the year.
std::string date_of(std::uint64_t wall_ns) {
  const auto seconds = static_cast<std::time_t>(wall_ns / kNsPerSecond);
  std::tm date{};
  if (::gmtime_r(&seconds, &date) == nullptr)
    return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z (first sample)", date,
                     wall_ns % kNsPerSecond / kNsPerMs);
}

/// Are its samples sums since the start of a process?  Their times, when processes were read, do
/// not tell how long the recording was.
bool is_sum(const stream::Event& event) {
  return event.unit == "bytes" || event.unit == "allocations";
}

/// Names the recorder of a version: perf writes only a number.
std::string recorder_of(const std::string& version) {
  return (!version.empty() && is_digit(version[0]) ? "perf " : "") + version;
}

}  // namespace

void StreamFacts::observe(const stream::Record& record, const stream::Session& session,
                          bool is_inside) {
  if (const auto& sample = session.sample(); is_inside && sample && sample->time_ns != 0) {
    const std::uint64_t begin_ns = begin_of(*sample, *session.event());
    first_ns_ = std::min(first_ns_.value_or(begin_ns), begin_ns);
    last_ns_ = std::max(last_ns_, sample->time_ns);
    times_.add(*sample, session.event()->name);
  }
  if (stream::is_script_mapping(record))
    if (const auto function = stream::parse_script_path(stream::parse_mmap(record)->path)) {
      runtimes_.emplace(stream::runtime_name(function->kind));
      if ((stream::script_flags(function->kind) & stream::kSymbolJit) != 0)
        compiled_.emplace(stream::runtime_name(function->kind));
    }
  if (record.type != stream::kRecordHeaderFeature)
    return;
  const auto feature = stream::parse_feature(record);
  if (!feature)
    return;
  if (feature->feature == stream::kFeatureHostName)
    host_ = feature->text().value_or("");
  else if (feature->feature == stream::kFeatureVersion)
    version_ = feature->text().value_or("");
  else if (feature->feature == stream::kFeatureCommandLine)
    command_ = feature->recorded_command().value_or("");
  else if (feature->feature == stream::kFeatureClockData)
    clock_ = stream::parse_clock_data(*feature);
}

std::string StreamFacts::text(const StreamReport& report, const stream::Session& session,
                              bool takes_all_time, bool is_elapsed) const {
  std::string text;
  const auto add = [&text](std::string_view key, std::string_view value) {
    folded::append_fact(text, key, value);
  };
  add("command", command_);
  add("host", host_);
  if (const auto start_ns = clock_ && first_ns_ ? clock_->wall_of(*first_ns_) : std::nullopt)
    add("time", date_of(*start_ns));
  const auto& events = session.events().all();
  const auto event = std::ranges::find(events, report.folded_event, &stream::Event::name);
  if (first_ns_ && (event == events.end() || !is_sum(*event)))
    add("duration", fmt::format("{:.3f} s", static_cast<double>(last_ns_ - *first_ns_) /
                                                static_cast<double>(kNsPerSecond)));
  if (event != events.end()) {
    add("event", takes_all_time ? "cpu,waits" : event->name);
    add("rate", rate_of(*event));
  }
  if (report.calls)
    report.calls->times.append_to(text);
  else if (takes_all_time)
    times_.append_to(text);
  if (report.unit != "samples")
    add("unit", report.unit);
  if (is_elapsed)
    add("weight", "elapsed");
  add("samples", plural(report.folded_samples, "sample"));
  add("lost", plural(report.counts.lost, "sample"));
  if (const auto walked = report.complete_stacks + report.incomplete_stacks; walked > 0)
    add("complete-stacks", share_rounded_down(report.complete_stacks, walked));
  add("runtimes", fmt::format("{}", fmt::join(runtimes_, ", ")));
  add("compiled", fmt::format("{}", fmt::join(compiled_, ", ")));
  const std::size_t mark = version_.rfind(stream::kEngineMark);
  add("recorder",
      recorder_of(version_.substr(0, std::min(mark, version_.find(stream::kStreamMark)))));
  if (mark != std::string::npos)
    add("engine", version_.substr(mark + stream::kEngineMark.size()));
  add("stackfold", version_text());
  return text;
}

void refuse_weight(const stream::Event& event, const std::string& field) {
  std::vector<std::string_view> numbers;
  for (const stream::TracepointField& known : event.fields)
    if (known.is_number() && !known.name.starts_with("common_"))
      numbers.push_back(known.name);
  throw Error(fmt::format("--weight: {} has no field {}; {}", event.name, in_quotes(field),
                          event.fields.empty()
                              ? "only perf record's samples of tracepoints have fields"
                              : fmt::format("its fields are {}", fmt::join(numbers, ", "))));
}

StreamCollapser::StreamCollapser(Input& input, const Options& options, folded::FoldedCounts& counts)
    : options_(options),
      counts_(counts),
      in_ns_(counts.frames()),
      locations_(counts.frames(), options),
      stacks_(input, options, locations_) {
  if (options.roots != Roots::kNone)
    roots_.emplace(counts.frames(), options);
  if (options.roots == Roots::kTree)
    child_waits_.emplace();
  if (options.chooses_calls)
    slow_calls_.emplace(counts.frames(), options, input.name(),
                        [this](const StackCount& counted) { count(counted); });
}

StreamReport StreamCollapser::fold() {
  if (options_.weight == Weight::kElapsed)
    elapsed_.emplace(counts_.frames());
  if (elapsed_ && options_.every_ns)
    elapsed_->divide(*options_.every_ns);
  StreamReport report = stacks_.read([this](const Stacks::Taken& taken) { take(taken); },
                                     [this](const stream::Record& record) { observe(record); });
  report.child_wait_ns = left_out_ns_;
  report.folded_samples -= left_out_samples_;
  if (slow_calls_) {
    report.calls = slow_calls_->finish();
    report.folded_samples = report.calls->samples;
  }
  counts_.add_divided(in_ns_, kNsPerUs);
  if (elapsed_)
    finish_elapsed();
  report.unit = unit_;
  report.facts =
      facts_.text(report, stacks_.session(), takes_all_time(report), elapsed_.has_value());
  return report;
}

void StreamCollapser::finish_elapsed() {
  const auto& events = stacks_.session().events().all();
  const bool has_silences =
      std::ranges::find(events, stream::kSilenceEvent, &stream::Event::name) != events.end();
  if (options_.time && has_silences && !elapsed_->is_whole())
    elapsed_->set_whole(in_range({.ns = seen_to_ns_ - seen_from_ns_, .end_ns = seen_to_ns_}));
  if (!has_silences || (!options_.time && !elapsed_->is_whole()))
    throw Error(
        "--weight elapsed: the recording does not have what it needs: record by pe-record "
        "--event cpu,waits, whole processes but not all, and do not cut the recording off, or "
        "choose a part of it by --time");
  elapsed_->add_to(counts_);
  unit_ = "us";
}

/// Returns the part of a time that is within --time.  One that is older than its clock is damage.
ElapsedTime::Part StreamCollapser::in_range(const ElapsedTime::Part& part) const {
  const auto& bounds = stacks_.bounds();
  if (!bounds || part.ns > part.end_ns)
    return part;
  constexpr std::uint64_t kMostUs = std::numeric_limits<std::uint64_t>::max() / kNsPerUs;
  const std::uint64_t from_ns = std::min(bounds->from_us, kMostUs) * kNsPerUs;
  const std::uint64_t to_ns = std::min(bounds->to_us, kMostUs) * kNsPerUs;
  const std::uint64_t begin_ns = std::max(part.end_ns - part.ns, from_ns);
  const std::uint64_t end_ns = std::min(part.end_ns, to_ns);
  return {.ns = end_ns - std::min(end_ns, begin_ns), .end_ns = end_ns};
}

bool StreamCollapser::takes_all_time(const StreamReport& report) const {
  const auto& events = stacks_.session().events().all();
  return !options_.event && !options_.all_events &&
         std::ranges::find(events, stream::kCpuEvent, &stream::Event::name) != events.end() &&
         report.would_take(options_, stream::kCpuEvent);
}

namespace {

/// Is the sample a wait, or does its event sample waiting threads as well?
bool may_be_wait(const stream::Event& event) {
  return event.name.starts_with("offcpu") || event.name == "wall-clock";
}

}  // namespace

/// While a thread waits for a child, the child is drawn.
bool StreamCollapser::leaves_out(const Stacks::Taken& taken) {
  const stream::Sample& sample = taken.sample;
  if (!child_waits_ || !may_be_wait(taken.event) || !child_waits_->has(sample) ||
      !roots_->had_child(sample.pid, begin_of(sample, taken.event)))
    return false;
  ++left_out_samples_;
  left_out_ns_ += sample.period;
  return true;
}

void StreamCollapser::add_roots(const stream::Sample& sample) {
  const auto& processes = stacks_.session().processes();
  if (!roots_)
    return stack_.push_back(locations_.root(sample.pid, sample.tid, processes));
  const auto roots = roots_->of(sample.pid, sample.tid, processes);
  stack_.insert(stack_.end(), roots.begin(), roots.end());
}

/// Marks the frames from `begin` on; a mark of the kind of code gives way.
void StreamCollapser::mark_wait(std::size_t begin) {
  for (std::size_t i = begin; i < stack_.size(); ++i) {
    const auto [marked, is_new] = marked_.try_emplace(stack_[i]);
    if (is_new)
      marked->second =
          locations_.word(fmt::format("{}_[o]", without_mark(counts_.frames()[stack_[i]])));
    stack_[i] = marked->second;
  }
}

void StreamCollapser::take(const Stacks::Taken& taken) {
  if (taken.sample.pid == 0 && taken.event.name == stream::kSilenceEvent) {
    if (elapsed_)
      elapsed_->set_whole(in_range({.ns = taken.sample.period, .end_ns = taken.sample.time_ns}));
    return;  // the whole recording is no stack
  }
  if (leaves_out(taken))
    return;
  auto& stack = stack_;
  stack.clear();
  if (options_.all_events)
    stack.push_back(locations_.word(clean_name(taken.event.name)));
  const std::size_t begin = stack.size();
  add_roots(taken.sample);
  const std::size_t end_of_roots = stack.size();
  stack.insert(stack.end(), taken.root_first.begin(), taken.root_first.end());
  // As in chain graphs, the waker's stack follows "--" upside down, so that both leaves meet at
  // "--".
  if (!taken.waker.empty()) {
    stack.push_back(locations_.word("--"));
    stack.insert(stack.end(), taken.waker.begin(), taken.waker.end());
    if (taken.blames_waker)  // all of it the other way round: the waker's stack comes first
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(begin), stack.end());
  }
  if (options_.marks_waits && taken.event.name.starts_with("offcpu"))
    mark_wait(taken.blames_waker ? begin + 1 : std::min(end_of_roots, stack.size() - 1));
  add(taken);
}

/// Adds the sample's stack, root first.
void StreamCollapser::add(const Stacks::Taken& taken) {
  const ElapsedTime::Part part =
      in_range({.ns = taken.sample.period, .end_ns = taken.sample.time_ns});
  if (elapsed_ && part.ns == 0)
    return;
  if (elapsed_)
    return taken.event.name == stream::kSilenceEvent
               ? elapsed_->add_silence(stack_, part)
               : elapsed_->add_running(stack_, part, taken.sample.weight);
  // Sums of time are in nanoseconds and printed in microseconds, as in offcputime.
  const bool is_time =
      options_.weight == Weight::kByUnit && std::string_view(taken.event.unit) == "ns";
  const std::uint64_t weight = weight_of(taken);
  if (unit_.empty())
    unit_ = is_time ? "us" : is_weighed_by_period(taken.event) ? taken.event.unit : "samples";
  const StackCount counted{.stack = stack_,
                           .is_time = is_time,
                           .weight = weight,
                           .begin_ns = begin_of(taken.sample, taken.event),
                           .end_ns = taken.sample.time_ns};
  if (slow_calls_)
    slow_calls_->hold(taken.sample, taken.event.name, counted);
  else
    count(counted);
}

void StreamCollapser::count(const StackCount& counted) {
  folded::Timeline* const timeline = counts_.timeline();
  if (timeline == nullptr)
    (counted.is_time ? in_ns_ : counts_).add(counted.stack, {.whole = counted.weight});
  else if (counted.begin_ns < counted.end_ns && options_.weight != Weight::kSamples)
    counts_.add_span(counted.begin_ns, counted.end_ns, counted.stack);
  else
    counts_.add_at(counted.end_ns, counted.stack,
                   counted.is_time ? timeline->count_of(counted.weight)
                                   : folded::Count{.whole = counted.weight});
}

/// Notes facts and, with a timeline, when samples were taken and lost.
void StreamCollapser::observe(const stream::Record& record) {
  const stream::Session& session = stacks_.session();
  if (slow_calls_)
    slow_calls_->follow(record, session);
  if (roots_)
    roots_->follow(record, session.processes());
  if (child_waits_)
    child_waits_->follow(record);
  const bool is_inside =
      !options_.time || !session.sample() || stacks_.holds(session.sample()->time_ns);
  facts_.observe(record, session, is_inside);
  if (const auto& sample = session.sample(); elapsed_ && sample && sample->time_ns != 0) {
    const std::uint64_t begin_ns = begin_of(*sample, *session.event());
    seen_from_ns_ = seen_to_ns_ == 0 ? begin_ns : std::min(seen_from_ns_, begin_ns);
    seen_to_ns_ = std::max(seen_to_ns_, sample->time_ns);
  }
  if (counts_.timeline() == nullptr)
    return;
  if (const auto& sample = session.sample(); sample && sample->time_ns != 0) {
    const std::uint64_t begin_ns = begin_of(*sample, *session.event());
    counts_.note_time(begin_ns, sample->time_ns);
    if (elapsed_)
      elapsed_->note_time(begin_ns, sample->time_ns);
  }
  // In other units, a number of samples means nothing.
  const auto& loss = session.loss();
  if (!loss || is_weighed_by_period(*loss->event) || options_.weight == Weight::kPeriod ||
      !stacks_.folds(*loss->event) || !stacks_.holds(loss->time_ns))
    return;
  counts_.note_time(loss->time_ns, loss->time_ns);
  const FrameId lost[] = {locations_.word("[lost samples]")};
  counts_.add_at(loss->time_ns, lost, {.whole = loss->samples});
}

std::uint64_t StreamCollapser::weight_of(const Stacks::Taken& taken) const {
  const bool by_period = options_.weight == Weight::kPeriod ||
                         (options_.weight == Weight::kByUnit && is_weighed_by_period(taken.event));
  return by_period ? taken.sample.period : 1;
}

}  // namespace pe::fold
