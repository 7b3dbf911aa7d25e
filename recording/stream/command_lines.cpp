// SPDX-License-Identifier: MIT
#include "recording/stream/command_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include "base/fd.h"
#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/stream_writer.h"

namespace pe::recording {
namespace {

/// Returns the words as in stream::CommRecord; empty for a kernel thread, and for a process that
/// has ended.  The kernel reads no file for us here, so a process cannot make us wait for one
/// (get_mm_cmdline() in fs/proc/base.c, FOLL_ANON).
std::string words_of(std::uint32_t pid) {
  constexpr std::size_t kMostBytes = 4096;
  const Fd file(::open(fmt::format("/proc/{}/cmdline", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::string words(kMostBytes, '\0');
  const ssize_t got = file ? ::read(file.get(), words.data(), words.size()) : 0;
  words.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!words.empty() && words.size() < kMostBytes && words.back() != '\0')
    words.push_back('\0');  // a process may overwrite its command line
  return words;
}

}  // namespace

stream::Record CommandLines::completed(const stream::Record& record) {
  const auto named = record.type == PERF_RECORD_COMM ? stream::parse_comm(record) : std::nullopt;
  const std::uint64_t time_ns = named ? stream::time_of(record, attr_) : 0;
  if (!named || named->pid != named->tid || !(named->is_exec || time_ns == 0) ||
      !named->command_line.empty())
    return record;
  Spender spender(budget_, named->pid);
  if (!spender.may_start())
    return record;
  const Spender::Scope scope(spender);
  const auto stat = stream::stat_of(static_cast<pid_t>(named->pid));
  // Another process may have its number by now, or it may have executed another program.  Engine
  // signal has the time of the tick before the program started.
  constexpr std::uint64_t kTickNs = 10 * kNsPerMs;
  if (!stat || stat->comm != named->comm || (time_ns != 0 && stat->start_ns > time_ns + kTickNs))
    return record;
  return with(record, static_cast<std::uint32_t>(stat->parent_pid), words_of(named->pid));
}

stream::Record CommandLines::with(const stream::Record& record, std::uint32_t parent,
                                  std::string_view words) {
  const auto trailer = record.bytes.last(stream::trailer_bytes(attr_));
  stream::RecordBuilder builder;
  builder.begin(record.type, record.misc)
      .add_bytes(record.body().first(record.body().size() - trailer.size()));
  stream::add_command_line(builder, parent, words);
  const auto bytes = std::as_bytes(std::span(builder.add_bytes(trailer).finish()));
  completed_.assign(bytes.begin(), bytes.end());
  return stream::view_record(completed_);
}

void write_command_line(const unwind::Sample& sent, Synthesizer& synthesizer) {
  const std::uint64_t exec_ns = sent.record.period;
  const bool is_soon = sent.record.time_ns < exec_ns + kMostExecNs;
  synthesizer.set_time(is_soon ? exec_ns : sent.record.time_ns);
  synthesizer.command_line({.pid = sent.record.tgid,
                            .tid = sent.record.tgid,
                            .comm = sent.name,
                            .parent_pid = static_cast<std::uint32_t>(sent.record.cookie),
                            .command_line = sent.words,
                            .is_of_next_exec = is_soon});
}

}  // namespace pe::recording
