// SPDX-License-Identifier: MIT
#include "recording/stream/whole_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/characters.h"
#include "base/cli/version.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "recording/stream/command_lines.h"
#include "recording/stream/file_ids.h"
#include "recording/stream/synthesize.h"
#include "stream/proc/maps.h"
#include "stream/records/record.h"
#include "stream/user_copy.h"

namespace pe::recording {
namespace {

/// Appends a text as perf writes it: its length, which includes a NUL, and its bytes.
void append_text(std::string& data, std::string_view text) {
  data += bytes_of(static_cast<std::uint32_t>(text.size() + 1));
  data.append(text).push_back('\0');
}

std::string text_data(std::string_view text) {
  std::string data;
  append_text(data, text);
  return data;
}

/// Returns the words of this program's command line, each with a NUL; empty if unknown.
std::string own_command_line() {
  constexpr std::size_t kMostBytes = 32UL * 1024;
  const Fd file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string words(kMostBytes, '\0');
  const ssize_t bytes = file ? ::read(file.get(), words.data(), words.size()) : 0;
  words.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  words.resize(words.rfind('\0') + 1);  // a word that was cut goes
  return words;
}

std::string command_line_data() {
  const std::string words = own_command_line();
  std::string texts;
  std::uint32_t count = 0;
  for (std::string_view left = words; const auto word = take_until(left, '\0'); ++count)
    append_text(texts, *word);
  return count == 0 ? std::string() : std::string(bytes_of(count)) + texts;
}

}  // namespace

std::string clock_data() {
  constexpr std::uint32_t kVersion = 1;
  constexpr std::uint32_t kClock = CLOCK_MONOTONIC;
  std::string data(bytes_of(kVersion));
  data += bytes_of(kClock);
  data += bytes_of(clock_ns(CLOCK_REALTIME));
  data += bytes_of(monotonic_ns());
  return data;
}

void write_origin(stream::StreamWriter& writer, std::string_view engine) {
  utsname system{};
  if (::uname(&system) == 0)
    writer.write_feature(stream::kFeatureHostName, text_data(system.nodename));
  writer.write_feature(
      stream::kFeatureVersion,
      text_data(fmt::format("stackpipe {}{}{}{}{}", version_text(), stream::kStreamMark,
                            stream::kStreamVersion, stream::kEngineMark, engine)));
  if (const std::string data = command_line_data(); !data.empty())
    writer.write_feature(stream::kFeatureCommandLine, data);
  writer.write_feature(stream::kFeatureClockData, clock_data());
}

namespace {

void write_lost(RecordedStream& stream, const OpenedEvent& event, std::uint64_t lost) {
  if (lost > 0 && !event.ids.empty())
    stream.writer().write_lost_samples(event.attr, event.ids.front(), lost);
}

/// Writes the end mark of a complete stream.
void write_end(RecordedStream& stream) {
  stream.writer().write_end();
  stream.writer().flush();
}

}  // namespace

void write_head(RecordedStream& stream, std::span<const OpenedEvent> events,
                std::string_view engine) {
  stream::StreamWriter& writer = stream.writer();
  writer.write_header();
  for (const auto& event : events) {
    // An attr record holds about 8,000 ids.  If there is only one event, readers ignore them.
    constexpr std::size_t kMaxIds = 7'500;
    if (events.size() > 1 && event.ids.size() > kMaxIds)
      throw Error(fmt::format(
          "--event: {} counters are too many to tell several events apart: record one at a time",
          event.ids.size()));
    const std::span ids(event.ids);
    writer.write_attr(
        event.is_mark ? stream::with_stack_pointer(event.attr) : stream.stated(event.attr),
        ids.first(std::min(ids.size(), kMaxIds)));
    if (!event.ids.empty())
      writer.write_event_name(event.ids.front(), event.name);
    if (!event.ids.empty() && event.weight)
      writer.write_event_unit(event.ids.front(), event.weight->unit);
  }
  write_origin(writer, engine);
}

std::vector<pid_t> write_running(RecordedStream& stream, const perf_event_attr& layout,
                                 const Target& target) {
  FileIds file_ids(layout, &stream.budget());
  CommandLines command_lines(layout, stream.budget());
  Synthesizer synthesizer(layout, [&](const stream::Record& record) {
    stream.write(file_ids.completed(command_lines.completed(record)));
  });
  synthesizer.recognise(stream.moved_text());
  synthesizer.kernel();
  std::vector<pid_t> processes = target.processes;
  if (target.is_command)
    return {};  // all of it will be recorded
  if (target.is_wide())
    processes = stream::all_processes();
  for (const pid_t tid : target.threads)
    if (const auto status = stream::status_of(tid))
      processes.push_back(status->pid);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (const pid_t pid : processes)
    synthesizer.process(pid);
  stream.writer().flush();
  return synthesizer.unreadable_processes();
}

std::uint64_t write_tail(RecordedStream& stream, const Counters& counters,
                         std::uint64_t lost_by_engine) {
  std::uint64_t all_lost = 0;
  for (std::size_t i = 0; i < counters.events().size(); ++i) {
    const std::uint64_t lost = counters.lost(i).value_or(0) + (i == 0 ? lost_by_engine : 0);
    write_lost(stream, counters.events()[i], lost);
    all_lost += lost;
  }
  write_end(stream);
  return all_lost;
}

void write_tail(RecordedStream& stream, const OpenedEvent& event, std::uint64_t lost) {
  write_lost(stream, event, lost);
  write_end(stream);
}

void finish_keeping(RecordedStream& stream, Closing& closing) {
  if (stream.keeper() != nullptr)
    stream.keeper()->finish(closing);
}

namespace {

std::string reason_of(Resource why, const Budget::Limit& limit) {
  constexpr double kMebibyte = 1U << 20, kPercent = 100;
  switch (why) {
    case Resource::kCpuNs:
      return fmt::format("reading it exceeds its share of {:.0f} % of a CPU",
                         kPercent * limit.most / limit.seconds / kNsPerSecond);
    case Resource::kReadBytes:
      return fmt::format("reading it exceeds its share of {:.0f} MiB per second",
                         limit.most / limit.seconds / kMebibyte);
    case Resource::kStackBytes:
      return fmt::format(
          "its stacks exceed their share of {:.0f} MiB per second, or of less on a "
          "busy machine",
          limit.most / limit.seconds / kMebibyte);
    case Resource::kKeptBytes:
      return fmt::format("its tables and names exceed its share of {:.0f} MiB",
                         limit.most / kMebibyte);
    case Resource::kWrittenBytes:
      break;
  }
  constexpr double kMinute = 60;
  return fmt::format("its new functions exceed its share of {:.0f} MiB per minute",
                     kMinute * limit.most / limit.seconds / kMebibyte);
}

}  // namespace

/// Processes of one name and with one reason share a line.
void describe_spending(RecordedStream& stream, Closing& closing) {
  struct Group {
    std::uint32_t first = 0;
    std::uint64_t processes = 0, count = 0;
  };
  std::map<std::pair<std::string, Resource>, Group> groups;
  for (const Budget::Loss& loss : stream.budget().losses()) {
    Group& group = groups[{stream.history().processes().comm(loss.target, loss.target), loss.why}];
    if (group.processes++ == 0)
      group.first = loss.target;
    group.count += loss.count;
  }
  constexpr std::size_t kShown = 8;
  std::size_t shown = 0;
  for (const auto& [key, group] : groups) {
    if (++shown > kShown)
      break;
    const auto& [name, why] = key;
    const std::string others =
        group.processes > 1 ? fmt::format(" and {} of that name", group.processes - 1) : "";
    closing.doubt(
        fmt::format("process {} ({}){} lost names or callers {}", group.first, name, others,
                    plural(group.count, "time")),
        fmt::format("{}; see BUDGET in pe-record(1)", reason_of(why, stream.budget().given(why))));
  }
  if (groups.size() > kShown)
    closing.doubts.push_back(fmt::format("processes with {} other names also lost names or callers",
                                         groups.size() - kShown));
}

std::string describe_unreadable(std::vector<pid_t> processes,
                                const std::unordered_set<std::uint32_t>& with_frames,
                                std::string_view fix) {
  std::erase_if(processes, [&with_frames](pid_t pid) {
    return !with_frames.contains(static_cast<std::uint32_t>(pid));
  });
  if (processes.empty())
    return {};
  if (processes.size() == 1)
    return fmt::format("process {} could not be read in /proc, so its frames have no names: {}",
                       processes.front(), fix);
  return fmt::format(
      "{} could not be read in /proc (the first: {}), so their frames have no names: {}",
      plural(processes.size(), "process"), processes.front(), fix);
}

}  // namespace pe::recording
