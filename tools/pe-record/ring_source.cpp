// SPDX-License-Identifier: MIT
#include "pe-record/ring_source.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "record/stream/whole_stream.h"

namespace pe::recorder {

void RingSource::open_stream(const perf_event_attr& attr, const std::vector<std::string>& notes) {
  attr_ = attr;
  writer_.emplace(session_.open_output());
  for (const std::string& note : notes)
    session_.note(note);
  stream_.emplace(*writer_, attr, request_, bpf_ ? &bpf_->tables() : nullptr);
  drain_.emplace(*stream_, attr, bpf_.get());
}

std::string RingSource::progress() const { return plural(drain_->passed().samples, "sample"); }

std::string RingSource::close_stream(const record::Passed& passed, const std::string& more) {
  lost_ = passed.lost.count();
  const std::string kept = record::finish_keeping(*stream_);
  if (!unreadable_.empty())
    session_.say(record::describe_unreadable(unreadable_));
  std::string line =
      fmt::format("{}, {} lost, {} seen; {}", plural(passed.samples, "sample"), lost_,
                  plural(passed.threads.size(), "thread"), session_.cost().describe());
  if (passed.throttled > 0)
    line += fmt::format("; throttled {}", plural(passed.throttled, "time"));
  if (const auto* unwinder = stream_->unwinder())
    if (const std::string stacks = unwind::describe(unwinder->counts()); !stacks.empty())
      line += "; " + stacks;
  return line + more + kept;
}

std::optional<std::string> RingSource::why_empty() {
  if (drain_->passed().samples > 0)
    return std::nullopt;
  return record::why_empty(session_.activity(), {.request = request_,
                                                 .period_ns = record::period_ns_of(attr_),
                                                 .program = program_,
                                                 .lost = lost_});
}

}  // namespace pe::recorder
