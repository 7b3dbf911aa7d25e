// SPDX-License-Identifier: MIT
#include "stacktop/span_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/json_writer.h"
#include "base/text.h"
#include "stacktop/text_report.h"

namespace pe::stacktop {
namespace {

bool is_waits(const stream::Event& event) {
  return event.unit == "ns" && event.name != stream::kWakerEvent;
}

/// Returns the CPU time for which a sample of the event stands; nullopt if it is no such event.
std::optional<std::uint64_t> cpu_time(const stream::Event& event, std::uint64_t period) {
  if (!event.unit.empty() && event.unit != "msec")
    return std::nullopt;
  if (stream::is_clock(event.attr))
    return period;
  const bool is_cycles =
      event.attr.type == PERF_TYPE_HARDWARE && event.attr.config == PERF_COUNT_HW_CPU_CYCLES;
  if (is_cycles && event.attr.freq != 0 && event.attr.sample_freq > 0)
    return kNsPerSecond / event.attr.sample_freq;
  return std::nullopt;
}

void add_up(std::uint64_t& sum, std::uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum))
    sum = ~std::uint64_t{0};
}

class SpanReader {
 public:
  explicit SpanReader(Input& input)
      : name_(input.name()),
        session_(input),
        spans_([this](const stream::Span& span, stream::SpanEnd how) { end(span, how); }) {}

  SpanReport read() {
    while (const auto record = session_.next())
      if (!spans_.follow(*record, session_) && session_.sample())
        count(*session_.sample(), *session_.event());
    spans_.finish();
    for (const stream::Event& event : session_.events().all()) {
      report_.has_waits = report_.has_waits || is_waits(event);
      report_.has_samples = report_.has_samples || cpu_event_ == event.name;
      if (const auto what = stream::span_event(event.name); what && !what->is_return)
        (void)line_of(spans_.index_of(what->function).value_or(0));
    }
    if (report_.lines.empty())
      throw Error(name_ + ": the recording has no calls (record them: pe-record --span FUNC)");
    for (std::size_t i = 0; i < report_.lines.size(); ++i) {
      report_.lines[i].function = spans_.functions()[i];
      report_.lines[i].counts = spans_.counts(i);
    }
    std::stable_sort(report_.lines.begin(), report_.lines.end(),
                     [](const SpanLine& a, const SpanLine& b) { return a.total_ns > b.total_ns; });
    report_.malformed = spans_.malformed();
    report_.losses = session_.counts();
    report_.damage = session_.damage();
    return std::move(report_);
  }

 private:
  struct Inside {
    std::uint64_t sampled_ns = 0, waited_ns = 0;
  };

  SpanLine& line_of(std::size_t function) {
    if (report_.lines.size() <= function)
      report_.lines.resize(function + 1);
    return report_.lines[function];
  }

  /// Adds a sample to the calls that its thread is in.
  void count(const stream::Sample& sample, const stream::Event& event) {
    const bool is_wait = is_waits(event);
    auto ns = is_wait ? std::optional(sample.period) : cpu_time(event, sample.period);
    if (!is_wait && ns) {  // several events would count the same time
      if (cpu_event_.empty())
        cpu_event_ = event.name;
      if (cpu_event_ != event.name)
        ns.reset();
    }
    if (!ns)
      return;
    spans_.for_each_open(sample.tid, [&](const stream::Span& span) {
      Inside& inside = inside_[span.number];
      add_up(is_wait ? inside.waited_ns : inside.sampled_ns, *ns);
    });
  }

  void end(const stream::Span& span, stream::SpanEnd how) {
    const auto found = inside_.extract(span.number);
    SpanLine& line = line_of(span.function);
    // A call that longjmp() or an exception has left may seem to last as long as its thread.
    if (!stream::has_known_length(how) || how == stream::SpanEnd::kEndedWithThread)
      return;
    const std::uint64_t ns = span.end_ns - span.begin_ns;
    if (how != stream::SpanEnd::kOpen)
      line.durations.add(ns);
    add_up(line.total_ns, ns);
    if (!found.empty()) {
      add_up(line.sampled_ns, found.mapped().sampled_ns);
      add_up(line.waited_ns, found.mapped().waited_ns);
    }
  }

  std::string name_;
  stream::Session session_;
  stream::Spans spans_;
  std::unordered_map<std::uint64_t, Inside> inside_;  ///< by the number of an open span
  std::string cpu_event_;                             ///< the event that samples CPU time
  SpanReport report_;
};

std::string share_text(std::optional<std::uint64_t> part, std::uint64_t all) {
  if (!part || all == 0)
    return "-";
  constexpr double kPercent = 100;
  return fmt::format("{:.1f}%", kPercent * static_cast<double>(*part) / static_cast<double>(all));
}

constexpr std::array<unsigned, 3> kPercents = {50, 95, 99};

void write_text(const SpanReport& report, std::size_t lines, const Options& options, Output& out) {
  out.write(fmt::format("{:>10} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7}  {}\n", "calls", "p50", "p95",
                        "p99", "max", "on CPU", "off CPU", "function"));
  for (const SpanLine& line : std::span(report.lines).first(lines)) {
    std::string text = fmt::format("{:>10}", line.counts.calls);
    const bool has_any = line.durations.count() > 0;
    for (const unsigned percent : kPercents)
      text += fmt::format(" {:>8}",
                          has_any ? duration_text(line.durations.percentile_ns(percent)) : "-");
    text += fmt::format(" {:>8} {:>7} {:>7}  ",
                        has_any ? duration_text(line.durations.longest_ns()) : "-",
                        share_text(on_cpu_ns(report, line), line.total_ns),
                        share_text(off_cpu_ns(report, line), line.total_ns));
    const std::string name = shown(line.function);
    out.write(text);
    out.write(options.columns && *options.columns > text.size()
                  ? shortened(name, *options.columns - text.size())
                  : name);
    out.write("\n");
  }
}

/// The names and values of a line, for programs.
std::vector<std::pair<std::string, std::optional<std::uint64_t>>> values_of(
    const SpanReport& report, const SpanLine& line) {
  const bool has_any = line.durations.count() > 0;
  const auto known = [has_any](std::uint64_t ns) {
    return has_any ? std::optional(ns) : std::nullopt;
  };
  std::vector<std::pair<std::string, std::optional<std::uint64_t>>> values;
  values.emplace_back("calls", line.counts.calls);
  for (const unsigned percent : kPercents)
    values.emplace_back(fmt::format("p{}_ns", percent),
                        known(line.durations.percentile_ns(percent)));
  values.emplace_back("max_ns", known(line.durations.longest_ns()));
  values.emplace_back("total_ns", line.total_ns);
  values.emplace_back("on_cpu_ns", on_cpu_ns(report, line));
  values.emplace_back("off_cpu_ns", off_cpu_ns(report, line));
  values.emplace_back("recursive", line.counts.nested);
  values.emplace_back("left", line.counts.left);
  values.emplace_back("lost", line.counts.lost);
  values.emplace_back("ended_with_thread", line.counts.ended_with_thread);
  values.emplace_back("open", line.counts.open);
  values.emplace_back("began_before", line.counts.began_before);
  return values;
}

void write_json_lines(const SpanReport& report, std::size_t lines, Output& out) {
  JsonWriter json(out);
  json.start_object();
  json.member("view", "spans");
  json.break_line(" ");
  json.start_array("lines");
  for (const SpanLine& line : std::span(report.lines).first(lines)) {
    json.break_line("  ");
    json.start_object();
    json.member("function", line.function);
    for (const auto& [name, value] : values_of(report, line))
      if (value)
        json.member(name, *value);
    json.end_object();
  }
  if (lines > 0)
    json.break_line(" ");
  json.end_array();
  json.end_object();
  out.write("\n");
}

void write_tsv_lines(const SpanReport& report, std::size_t lines, Output& out) {
  std::string heading;
  for (const auto& [name, value] : values_of(report, report.lines.front()))
    heading += name + "\t";
  out.write(heading + "function\n");
  for (const SpanLine& line : std::span(report.lines).first(lines)) {
    std::string text;
    for (const auto& [name, value] : values_of(report, line))
      text += (value ? std::to_string(*value) : "") + "\t";
    out.write(text + shown(line.function) + "\n");
  }
}

}  // namespace

std::optional<std::uint64_t> on_cpu_ns(const SpanReport& report, const SpanLine& line) {
  if (report.has_samples)
    return std::min(line.sampled_ns, line.total_ns);
  if (report.has_waits)
    return line.total_ns - std::min(line.waited_ns, line.total_ns);
  return std::nullopt;
}

std::optional<std::uint64_t> off_cpu_ns(const SpanReport& report, const SpanLine& line) {
  if (report.has_waits)
    return std::min(line.waited_ns, line.total_ns);
  if (report.has_samples)
    return line.total_ns - std::min(line.sampled_ns, line.total_ns);
  return std::nullopt;
}

SpanReport read_spans(Input& input) { return SpanReader(input).read(); }

void write_spans(const SpanReport& report, const Options& options, Output& out) {
  const std::size_t lines =
      std::min(options.top.value_or(report.lines.size()), report.lines.size());
  switch (options.format) {
    case Format::kMarkdown:  // read_options() refuses it
    case Format::kText:
      return write_text(report, lines, options, out);
    case Format::kJson:
      return write_json_lines(report, lines, out);
    case Format::kTsv:
      return write_tsv_lines(report, lines, out);
  }
}

}  // namespace pe::stacktop
