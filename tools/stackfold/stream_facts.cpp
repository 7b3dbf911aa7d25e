// SPDX-License-Identifier: MIT
#include "stackfold/stream_facts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ctime>

#include "base/characters.h"
#include "base/cli/version.h"
#include "base/clock.h"
#include "base/plural.h"
#include "base/share.h"
#include "folded/facts.h"
#include "stream/script_mapping.h"

namespace pe::fold {
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

/// Returns "2026-11-25T09:06:33Z (first sample)"; empty for a time that has no date.  The words
/// behind the time keep programs that add up the last words of lines from adding the year.
std::string date_of(std::uint64_t wall_ns) {
  const auto seconds = static_cast<std::time_t>(wall_ns / kNsPerSecond);
  std::tm date{};
  if (::gmtime_r(&seconds, &date) == nullptr)
    return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z (first sample)", date);
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

void StreamFacts::observe(const stream::Record& record, const stream::Session& session) {
  if (const auto& sample = session.sample(); sample && sample->time_ns != 0) {
    const std::uint64_t begin_ns = begin_of(*sample, *session.event());
    first_ns_ = std::min(first_ns_.value_or(begin_ns), begin_ns);
    last_ns_ = std::max(last_ns_, sample->time_ns);
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

std::string StreamFacts::text(const StreamReport& report, const stream::Session& session) const {
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
    add("event", event->name);
    add("rate", rate_of(*event));
  }
  if (report.unit != "samples")
    add("unit", report.unit);
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

}  // namespace pe::fold
