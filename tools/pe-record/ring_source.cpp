// SPDX-License-Identifier: MIT
#include "pe-record/ring_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/inprocess/command.h"
#include "recording/session.h"
#include "recording/stream/whole_stream.h"
#include "stream/proc/own_rights.h"

namespace pe::recorder {

void RingSource::open_stream(const recording::OpenedEvent& event,
                             const std::vector<std::string>& notes, recording::StreamParts parts) {
  event_ = event.name;
  attr_ = event.attr;
  writer_.emplace(session_.open_output());
  for (const std::string& note : notes)
    session_.note(note);
  if (bpf_) {
    parts.tables = &bpf_->tables();
    parts.reader = &bpf_->scripts();
  }
  stream_.emplace(*writer_, attr_, request_, session_.budget(), std::move(parts));
  drain_.emplace(*stream_, attr_, bpf_.get());
}

void RingSource::expect_command() {
  if (session_.child() == nullptr)
    return;
  for (const auto& program : inprocess::programs_of_command(session_.request().command.front())) {
    stream_->expect_program(program);
    if (bpf_)
      bpf_->expect_program(*stream_, program);
  }
}

std::string RingSource::progress() const { return plural(drain_->passed().samples, "sample"); }

Closing RingSource::close_stream(const recording::Passed& passed) {
  lost_ = passed.lost.count();
  Closing closing;
  if (const std::string problem = recording::describe_unreadable(
          unreadable_, passed.processes, stream::fix_of_unreadable_processes());
      !problem.empty())
    session_.say(problem);
  const auto* unwinder = stream_->unwinder();
  const unwind::StackCounts stacks =
      unwinder != nullptr ? unwinder->counts() : unwind::StackCounts{};
  const std::string summary = recording::summarize(closing,
                                                   {.noun = "sample",
                                                    .name = "samples",
                                                    .count = passed.samples,
                                                    .lost = lost_,
                                                    .stacks = stacks},
                                                   session_.cost());
  closing.fact("engine", name_of(request_.engine));
  closing.fact("event", event_);
  closing.figure("processes", passed.processes.size());
  closing.figure("threads", passed.threads.size());
  if (passed.samples + passed.marks > 0) {
    closing.summary = summary;
    if (!request_.probes.empty() && session_.cost().wall_seconds() > 0) {
      const std::string hits = fmt::format(
          "{:.0f}", static_cast<double>(passed.samples + lost_) / session_.cost().wall_seconds());
      closing.figure("hits_per_second", hits);
      closing.summary += fmt::format(", {} hits per second", hits);
    }
    if (lost_ > 0)
      closing.doubt(fmt::format("{} lost, because the rings were full", plural(lost_, "sample")),
                    fix_of_losses());
  }
  if (passed.throttled > 0)
    closing.doubt("the kernel throttled sampling " + plural(passed.throttled, "time"),
                  "lower the rate");
  closing.detail(plural(passed.threads.size(), "thread") + " seen");
  closing.detail(session_.cost().describe());
  recording::add_stacks(
      closing, stacks,
      {.if_cut = if_cut(request_, stacks.cut_bytes, advice_), .if_foreign = "use --call-graph fp"});
  stream_->scripts().describe(closing);
  stream_->runtimes().describe(closing);
  const bool is_perf = !bpf_ && request_.engine != recording::Engine::kPtrace &&
                       request_.engine != recording::Engine::kSignal;
  if (is_perf && stream_->has_unread_scripts())
    closing.doubt("this engine does not read the functions of scripts", advice_.if_scripts);
  recording::describe_spending(*stream_, closing);
  recording::finish_keeping(*stream_, closing);
  return closing;
}

std::optional<std::string> RingSource::why_empty() {
  if (drain_->passed().samples + drain_->passed().marks > 0)
    return std::nullopt;
  return recording::why_empty(session_.activity(), {.request = request_,
                                                    .period_ns = recording::period_ns_of(attr_),
                                                    .program = program_,
                                                    .lost = lost_,
                                                    .fix_of_losses = fix_of_losses()});
}

std::string RingSource::fix_of_losses() const {
  if (request_.engine == recording::Engine::kPtrace)  // it has one ring of fixed size
    return "lower the rate";
  constexpr std::uint32_t kSmallCopy = 8192;
  const bool has_large_copies =
      !bpf_ && stream_->unwinder() != nullptr &&
      request_.stack_bytes.value_or(recording::kMaxStackBytes) > kSmallCopy;
  return fmt::format("{}{}, or lower the rate",
                     has_large_copies ? "lower --stack-size (8192), " : "", fix_of_full_rings_);
}

}  // namespace pe::recorder
