// SPDX-License-Identifier: MIT
#include "malloctrace/snapshots.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.h"
#include "base/io/new_file.h"
#include "base/io/output.h"
#include "malloctrace/heap_stream.h"

namespace pe::malloctrace {
namespace {

sigset_t snapshot_set() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

Snapshots::Snapshots(const Options& options, const Processes& processes, Say say)
    : options_(options), processes_(processes), say_(std::move(say)) {
  const sigset_t set = snapshot_set();
  signal_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signal_)
    throw_errno("signalfd", errno);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

Snapshots::~Snapshots() {
  signalfd_siginfo info{};
  while (::read(signal_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
  }
  const sigset_t set = snapshot_set();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void Snapshots::start(std::uint64_t now_ns) {
  if (options_.snapshot_ns)
    next_ns_ = now_ns + *options_.snapshot_ns;
}

/// Returns the time of a snapshot that is due.  One at an interval has the time at which it was
/// due, although it comes up to a tick later: the times of all of them are then exactly an interval
/// apart, and in steps of that length (stackfold --every) no two are in one step.
std::optional<std::uint64_t> Snapshots::due(std::uint64_t now_ns) {
  signalfd_siginfo info{};
  std::optional<std::uint64_t> due_ns;
  if (::read(signal_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    due_ns = now_ns;
  if (next_ns_ && now_ns >= *next_ns_) {
    // Skips snapshots that could not be made in time.
    due_ns = now_ns - (now_ns - *next_ns_) % *options_.snapshot_ns;
    next_ns_ = *due_ns + *options_.snapshot_ns;
  }
  return due_ns;
}

void Snapshots::write_due(std::uint64_t now_ns) {
  const auto time_ns = due(now_ns);
  if (!time_ns)
    return;
  if (!options_.writes_file()) {
    say_("SIGUSR1: no snapshot without --output FILE, which names it FILE.1");
    return;
  }
  const std::string path = fmt::format("{}.{}", options_.output, ++written_);
  try {
    write(path, *time_ns);
  } catch (const Error& error) {
    say_(fmt::format("no snapshot: {}", error.what()));
  }
}

/// The file gets its name once it is complete.
void Snapshots::write(const std::string& path, std::uint64_t time_ns) const {
  NewFile file(path);  // the user did not name this path, so even a pipe of ours is replaced
  FdOutput out(file.fd().get(), path);
  Sink sink(options_, out);
  processes_.for_each_running([&](const HeapOfProcess& process) { sink.add(process, time_ns); });
  sink.finish("");
  out.flush();
  file.keep();
}

}  // namespace pe::malloctrace
