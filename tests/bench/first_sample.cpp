// Measures how long after a recorder's start its first sample is taken, and how long until a filter
// can read it.
//
//   first_sample COMMAND [ARGUMENT]...
//
// COMMAND writes a sample stream to its standard output, as `pe-record -p PID` or `perf record
// -k CLOCK_MONOTONIC -o - -p PID`.  The first sample is the first whose call chain has two user
// frames; without call chains (copied stacks), the first sample at all.  Prints two numbers, in
// milliseconds since the start: the time of the sample, and the time at which it could be read.
// Then ends the command.  Exit 1 if there is no sample.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "base/error.h"
#include "base/io/input.h"
#include "stream/records/callchain.h"
#include "stream/records/event.h"
#include "stream/records/sample.h"
#include "stream/stream_reader.h"

namespace {

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool has_stack(const pe::stream::Sample& sample, std::uint16_t misc) {
  if (sample.has_user_copy())
    return true;
  int user_frames = 0;
  pe::stream::for_each_frame(sample, misc, [&](const pe::stream::CallChainEntry& entry) {
    user_frames += entry.is_kernel ? 0 : 1;
  });
  return user_frames > 1;
}

/// Returns the time of the first sample with a stack; 0 if there is none.
std::uint64_t first_sample_ns(pe::Input& input) {
  pe::stream::StreamReader reader(input);
  pe::stream::EventTable events;
  while (const auto record = reader.next()) {
    if (record->type == pe::stream::kRecordHeaderAttr) {
      events.add(*record);
      continue;
    }
    const auto* event = record->is_sample() ? events.find(*record) : nullptr;
    const auto sample =
        event == nullptr ? std::nullopt : pe::stream::parse_sample(*record, event->attr);
    if (sample && has_stack(*sample, record->misc))
      return sample->time_ns;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int ends[2];
  if (argc < 2 || ::pipe2(ends, O_CLOEXEC) != 0) {
    fmt::print(stderr, "Usage: first_sample COMMAND [ARGUMENT]...\n");
    return 2;
  }
  const std::uint64_t start_ns = now_ns();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execvp(argv[1], argv + 1);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::uint64_t taken_ns = 0;
  std::uint64_t read_ns = 0;
  try {
    auto input = pe::Input::open("-", ends[0]);
    taken_ns = first_sample_ns(input);
    read_ns = now_ns();
  } catch (const pe::Error& error) {
    fmt::print(stderr, "first_sample: {}\n", error.what());
  }
  ::close(ends[0]);
  if (pid > 0) {
    ::kill(pid, SIGTERM);
    ::waitpid(pid, nullptr, 0);
  }
  if (taken_ns == 0) {
    fmt::print(stderr, "first_sample: {}: no sample\n", argv[1]);
    return 1;
  }
  const auto since_start_ms = [&](std::uint64_t ns) {
    return (static_cast<double>(ns) - static_cast<double>(start_ns)) / 1e6;
  };
  fmt::print("{:.1f} {:.1f}\n", since_start_ms(taken_ns), since_start_ms(read_ns));
  return 0;
}
