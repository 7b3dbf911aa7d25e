// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/perf_script_collapser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/clock.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "stackfold/formats/perf_script/frame.h"
#include "stackfold/formats/perf_script/sample_line.h"
#include "stackfold/frame_text.h"
#include "stackfold/perl.h"

namespace pe::fold {
namespace {

/// Returns the time in microseconds; nullopt if there is none, or its nanoseconds do not fit.
std::optional<std::uint64_t> time_of(const PerfHeader& header) {
  const auto time_us = header_time_us(header);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max() / kNsPerUs;
  return time_us && *time_us <= kMost ? time_us : std::nullopt;
}

/// Returns the number of samples in a record of lost ones: "PERF_RECORD_LOST id:7: lost:12".
std::uint64_t lost_samples(std::string_view line) {
  constexpr std::string_view kRecord = ": PERF_RECORD_LOST", kCount = "lost:";
  const auto at = line.find(kRecord);
  const auto count = at == line.npos ? at : line.find(kCount, at);
  if (count == line.npos)
    return 0;
  line.remove_prefix(count + kCount.size());
  return parse_number<std::uint64_t>(line.substr(0, line.find_first_not_of("0123456789")))
      .value_or(0);
}

/// Is the event one of the kernel's clocks, whose period is a time in nanoseconds?
bool is_clock(std::string_view event) {
  const auto name = event.substr(0, event.find(':'));
  return name == "cpu-clock" || name == "task-clock";
}

}  // namespace

PerfScriptCollapser::PerfScriptCollapser(folded::FoldedCounts& counts, const Options& options)
    : counts_(counts),
      options_(options),
      rules_{.marks = options.marks,
             .with_addresses = options.with_addresses,
             .with_modules = options.with_modules,
             .is_perl = options.is_perl} {
  if (options.with_inlined)
    uninliner_.emplace(rules_, options.with_context);
  if (options.event)
    report_.folded_event = *options.event;
  if (options.is_perl)
    counts.keep_large();
}

TextReport PerfScriptCollapser::fold(Input& input) {
  LineReader lines(input);
  input_ = &input;
  lines_ = &lines;
  while (auto line = lines.next()) {
    if (!options_.is_perl && line->ends_with('\r'))
      line->remove_suffix(1);
    take(*line);
  }
  if (!options_.is_perl) {  // the Perl script loses a last sample without a blank line after it
    add_pending();
    end_sample();
  }
  if (is_clock(report_.folded_event) && has_period_ && options_.weight != Weight::kSamples)
    report_.unit = "ns";
  if (lost_ > 0)
    report_.left_out = plural(lost_, "sample") + " lost by perf";
  if (uninliner_) {
    report_.modules_without_debug = uninliner_->modules_without();
    report_.first_without_debug = uninliner_->first_without();
  }
  input_ = nullptr;
  lines_ = nullptr;
  return report_;
}

void PerfScriptCollapser::take(std::string_view line) {
  if (is_pending_ && take_source(line))
    return;
  if (line.empty() || (!options_.is_perl && line.size() < 8 && is_blank_line(line))) {
    end_sample();
    return;
  }
  const bool is_indented = line[0] == '\t' || line[0] == ' ';
  if (line[0] == '#' || (is_indented && (take_expected(line) || take_known(line))))
    return;
  if (!options_.is_perl && take_other_record(line, is_indented))
    return;
  const auto [header, sole_frame] = parse_sample_line(line, options_.is_perl);
  if (header && is_weight_lost(*header)) {
    end_sample();  // the following frames then belong to no sample
    ignore(line);
    return;
  }
  if (header) {
    take_header(*header);
    if (sole_frame)
      take_frame(*sole_frame);
    return;
  }
  const auto frame = parse_perf_frame(line, options_.is_perl);
  if (frame)
    take_frame(*frame);
  else
    ignore(line);
}

/// Accepts the lines of a record that is no sample.
bool PerfScriptCollapser::take_other_record(std::string_view line, bool is_indented) {
  if (in_other_record_ && is_indented)
    return true;
  in_other_record_ = is_other_record(line);
  if (!in_other_record_)
    return false;
  end_sample();
  lost_ += lost_samples(line);
  return true;
}

/// Is the period needed, and does it exceed 64 bits?  stackcollapse-perf.pl accepts any number.
bool PerfScriptCollapser::is_weight_lost(const PerfHeader& header) const {
  return !options_.is_perl && options_.weight != Weight::kSamples && header.event &&
         header.event->is_period_too_large;
}

void PerfScriptCollapser::take_header(const PerfHeader& header) {
  if (!options_.is_perl)
    end_sample();  // the text may have lost its blank lines
  const auto time_us = options_.time || options_.every_ns ? time_of(header) : std::nullopt;
  if (time_us)
    counts_.note_time(*time_us * kNsPerUs, *time_us * kNsPerUs);
  if (header.event && !report_.takes_event(options_, header.event->name))
    return;
  if (!report_.takes_time(options_, time_us))
    return;
  in_sample_ = true;
  time_ns_ = time_us.value_or(0) * kNsPerUs;
  before_ = Before::kNothing;
  weight_ = options_.weight == Weight::kSamples ? 1 : period_of(header);
  large_weight_ = 0;
  if (weight_ == 0 && header.event && header.event->is_period_too_large)
    large_weight_ = std::strtod(std::string(header.event->period_digits).c_str(), nullptr);
  has_period_ = has_period_ || (header.event && header.event->period > 0);
  rules_.is_java = header.comm.starts_with("java");
  roots_.clear();
  if (options_.all_events && header.event)
    roots_.push_back(counts_.frames().intern(clean_name(header.event->name)));
  const std::string root = root_of(header);
  // In stackcollapse-perf.pl, a ';' in a thread's name divides it into frames.
  for (std::size_t begin = 0; begin <= root.size();) {
    const auto end = std::min(root.find(';', begin), root.size());
    roots_.push_back(counts_.frames().intern(std::string_view(root).substr(begin, end - begin)));
    begin = end + 1;
  }
}

/// Returns 1 if perf printed no period, or 0.  To the Perl script, "00" is a period of 0.
std::uint64_t PerfScriptCollapser::period_of(const PerfHeader& header) const {
  if (!header.event)
    return 1;
  const PerfEventField& event = *header.event;
  const bool is_given = options_.is_perl && event.period_digits.size() > 1;
  return event.period == 0 && !is_given ? 1 : event.period;
}

std::string PerfScriptCollapser::root_of(const PerfHeader& header) const {
  std::string root = options_.is_perl ? std::string(header.comm) : clean_name(header.comm);
  std::replace(root.begin(), root.end(), ' ', '_');
  const std::string_view pid = header.pid.empty() ? "?" : header.pid;
  if (options_.root == RootName::kCommPid)
    root += fmt::format("-{}", pid);
  else if (options_.root == RootName::kCommPidTid)
    root += fmt::format("-{}/{}", pid, header.tid);
  return root;
}

/// Accepts the line if its frame also followed the previous frame the last time.
bool PerfScriptCollapser::take_expected(std::string_view line) {
  if (known_.empty() || !in_sample_)  // known_ is empty if take_frame_by_line() reads frames
    return false;
  const std::uint32_t expected = known_[last_].next;
  const Known& known = known_[expected];
  std::string_view rest = behind_pc(line);
  if (known.tail.empty() || known.is_java != rules_.is_java || !rest.starts_with(known.function))
    return false;
  rest.remove_prefix(known.function.size());
  if (rest.size() != known.tail.size() &&
      (rest.size() < known.tail.size() ||
       !is_offset(rest.substr(0, rest.size() - known.tail.size()))))
    return false;
  if (!rest.ends_with(known.tail))
    return false;
  leaf_first_.push_back(known.place);
  last_ = expected;
  // The names of a large program do not fit the L2 cache.
  __builtin_prefetch(known_[known.next].function.data());
  return true;
}

/// Accepts the line if its function and module are known.  A sample's first line cannot look like
/// that: its numbers would be a part of the function.
bool PerfScriptCollapser::take_known(std::string_view line) {
  if (known_.empty() || !in_sample_)
    return false;
  const auto frame = parse_perf_frame(line, options_.is_perl);
  const KnownIndex& index = index_[rules_.is_java ? 1 : 0];
  const auto found =
      frame ? index.find({without_offset(frame->function), frame->module}) : index.end();
  if (found == index.end())
    return false;
  follow_with(found->second);
  return true;
}

/// Adds a frame, which is then expected after the last one.
void PerfScriptCollapser::follow_with(std::uint32_t known) {
  leaf_first_.push_back(known_[known].place);
  known_[last_].next = known;
  last_ = known;
}

void PerfScriptCollapser::take_frame(const PerfFrame& frame) {
  if (rules_.with_addresses || uninliner_ || options_.with_lines) {
    take_frame_by_line(frame);
    return;
  }
  if (!in_sample_)
    return;
  follow_with(find_or_add(frame));
}

/// Reads a frame whose text depends on more than its function and module.
void PerfScriptCollapser::take_frame_by_line(const PerfFrame& frame) {
  // Outside of a chosen sample the frame is dropped, but its source line is still a known line.
  pending_.clear();
  const bool is_expanded = in_sample_ && uninliner_ && uninline(frame);
  if (in_sample_ && !is_expanded)
    pending_ = frames_of(frame, rules_);
  has_context_ = is_expanded && options_.with_context;
  next_source_ = 0;
  if (options_.is_perl)
    sources_ = is_expanded ? 0 : perl_source_lines(frame, pending_.size());
  is_pending_ = options_.with_lines && !(options_.is_perl && sources_ == 0);
  if (!is_pending_)
    add_pending();
}

/// Makes the functions at this frame, with inlined ones, pending; false if none are known.
bool PerfScriptCollapser::uninline(const PerfFrame& frame) {
  const Before before = before_;
  before_ = frame.module.starts_with('[') ? Before::kKernel
            : frame.module == "inlined"   ? Before::kInlined
                                          : Before::kOther;
  if (before == Before::kInlined)
    return false;  // perf already printed them: its lines "(inlined)" precede the function's
  // The frame that the kernel interrupted is not a return address.
  const bool is_return = !rules_.is_perl && before == Before::kOther;
  pending_ = uninliner_->frames_at(frame, is_return);
  return !pending_.empty();
}

/// Accepts the line after a frame if it is the frame's source line.
bool PerfScriptCollapser::take_source(std::string_view line) {
  if (options_.is_perl) {  // the Perl script accepts any line, one for each inlined function
    pending_[next_source_++] += perl_source_suffix(line);
    if (next_source_ == sources_)
      add_pending();
    return true;
  }
  const bool is_source = is_source_line(line);
  if (is_source && !pending_.empty() && !has_context_)
    pending_.back() += source_suffix(line);
  add_pending();
  return is_source;
}

/// Adds the pending frames to the sample.
void PerfScriptCollapser::add_pending() {
  is_pending_ = false;
  if (pending_.empty())
    return;
  const std::string joined = fmt::format("{}", fmt::join(pending_, ";"));
  pending_.clear();
  auto known = by_text_.find(joined);
  if (known == by_text_.end()) {
    Place place{static_cast<std::uint32_t>(pool_.size()), 0};
    // With --compat a frame may contain a ';', which also divides it.
    for (std::size_t begin = 0; begin <= joined.size(); ++place.count) {
      const auto end = std::min(joined.find(';', begin), joined.size());
      pool_.push_back(counts_.frames().intern(joined.substr(begin, end - begin)));
      begin = end + 1;
    }
    known = by_text_.emplace(arena_.store(joined), place).first;
  }
  leaf_first_.push_back(known->second);
}

std::uint32_t PerfScriptCollapser::find_or_add(const PerfFrame& frame) {
  KnownIndex& index = index_[rules_.is_java ? 1 : 0];
  const std::string_view function = without_offset(frame.function);
  const auto found = index.find({function, frame.module});
  if (found != index.end())
    return found->second;
  const auto added = static_cast<std::uint32_t>(known_.size());
  const std::string_view tail = tail_of(frame.module);
  const std::string_view kept = arena_.store(function);
  known_.push_back(
      {kept, frame.ends_line ? tail : std::string_view{}, make_place(frame), rules_.is_java, 0});
  index.emplace(std::pair(kept, tail.substr(2, frame.module.size())), added);
  return added;
}

/// Returns " (module)", which all frames of the module share, so that it stays in a cache.
std::string_view PerfScriptCollapser::tail_of(std::string_view module) {
  const std::string tail = fmt::format(" ({})", module);
  const auto known = tails_.find(tail);
  return known != tails_.end() ? *known : *tails_.insert(arena_.store(tail)).first;
}

PerfScriptCollapser::Place PerfScriptCollapser::make_place(const PerfFrame& frame) {
  const std::vector<std::string> frames = frames_of(frame, rules_);
  const Place place{static_cast<std::uint32_t>(pool_.size()),
                    static_cast<std::uint32_t>(frames.size())};
  for (const std::string& text : frames)
    pool_.push_back(counts_.frames().intern(text));
  return place;
}

void PerfScriptCollapser::end_sample() {
  if (!in_sample_)
    return;
  stack_ = roots_;
  std::for_each(leaf_first_.rbegin(), leaf_first_.rend(), [this](const Place& place) {
    for (std::uint32_t i = 0; i < place.count; ++i)
      stack_.push_back(pool_[place.begin + i]);
  });
  if (large_weight_ > 0)
    counts_.add_large(stack_, large_weight_);
  else
    counts_.add_at(time_ns_, stack_, {.whole = weight_});
  ++report_.samples;
  report_.without_stack += leaf_first_.empty() ? 1 : 0;
  in_sample_ = false;
  leaf_first_.clear();
}

void PerfScriptCollapser::ignore(std::string_view line) {
  if (report_.ignored_lines++ == 0)
    report_.first_ignored =
        fmt::format("{}:{}: {}", input_->name(), lines_->line_number(), in_quotes(line));
}

namespace perf_script {
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return PerfScriptCollapser(counts, options).fold(input);
}

TextReport fold_as_perl(std::span<Input> inputs, const Options& options,
                        folded::FoldedCounts& counts) {
  PerfScriptCollapser collapser(counts, options);
  TextReport report;
  for (Input& input : inputs)
    report = collapser.fold(input);
  return report;
}

}  // namespace perf_script

}  // namespace pe::fold
