// SPDX-License-Identifier: MIT
#include "recording/kept/slow_calls.h"

#include <poll.h>
#include <unistd.h>

#include <span>

#include "base/io/json_writer.h"
#include "stream/records/sample.h"

namespace pe::recording {
namespace {

/// Keeps a line, so that it is written as a whole or not at all.
class LineOutput final : public Output {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  void flush() override {}
  std::string text;
};

}  // namespace

SlowCallOutput::SlowCallOutput(Output& out, const SlowCallRequest& request)
    : out_(out), request_(request), spans_([this](const stream::Span& span, stream::SpanEnd end) {
        if (end == stream::SpanEnd::kReturned && span.end_ns - span.begin_ns > request_.longer_ns)
          report(span);
      }) {}

void SlowCallOutput::write(std::string_view bytes) {
  out_.write(bytes);
  written_.take(bytes, [this](const stream::Record& record) { follow(record); });
}

void SlowCallOutput::follow(const stream::Record& record) {
  if (record.type == stream::kRecordHeaderAttr)
    events_.add(record);
  if (record.type == stream::kRecordEventUpdate)
    events_.update(record);
  const stream::Event* event = events_.find(record);
  if (event == nullptr)
    return;
  if (record.type == PERF_RECORD_EXIT) {
    if (const auto ended = stream::parse_task(record))
      spans_.end_thread(ended->tid, stream::time_of(record, event->attr));
  } else if (record.type == PERF_RECORD_LOST) {
    spans_.end_all(stream::SpanEnd::kLost, stream::time_of(record, event->attr));
  } else if (record.is_sample() && stream::span_event(event->name)) {
    if (const auto sample = stream::parse_sample(record, event->attr))
      spans_.follow(*sample, *event);
  }
}

void SlowCallOutput::report(const stream::Span& span) {
  LineOutput line;
  JsonWriter json(line);
  json.start_object();
  json.member("function", spans_.functions()[span.function], "pid", span.pid, "tid", span.tid,
              "time_ns", span.end_ns, "ns", span.end_ns - span.begin_ns);
  json.end_object();
  line.text += '\n';
  // The recording does not wait for the reader of the reports.
  pollfd polled{request_.fd, POLLOUT, 0};
  const bool is_written = ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLOUT) != 0 &&
                          ::write(request_.fd, line.text.data(), line.text.size()) ==
                              static_cast<ssize_t>(line.text.size());
  unreported_ += is_written ? 0 : 1;
}

}  // namespace pe::recording
