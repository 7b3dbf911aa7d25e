// SPDX-License-Identifier: MIT
#include "malloctrace/processes.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace pe::malloctrace {
namespace {

/// Whether a signal ended the process; false also if the kernel does not report that (before 6.15).
bool was_killed(const Fd& pidfd) {
  // linux/pidfd.h of Linux 6.15: struct pidfd_info, its first version.
  struct {
    std::uint64_t mask, cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  } info{};
  static_assert(sizeof info == 64);
  constexpr std::uint64_t kExit = 1 << 3;
  constexpr unsigned long kGetInfo = _IOWR(0xff, 11, info);
  info.mask = kExit;
  return pidfd && ::ioctl(pidfd.get(), kGetInfo, &info) == 0 && (info.mask & kExit) != 0 &&
         WIFSIGNALED(info.exit_code);
}

}  // namespace

Processes::Processes(OnHeap on_end) : on_end_(std::move(on_end)), listener_("malloctrace") {}

void Processes::pass() {
  while (pass_once() && !listener_.is_listening()) {
  }
}

/// Whether descriptors have become free.
bool Processes::pass_once() {
  const bool has_received =
      listener_.take_in([this](pid_t pid, Fd fd) { begin(pid, std::move(fd)); });
  // Removes the ended ones first: the functions called below may use the list of running ones.
  const std::vector<Running> ended = inprocess::take_ended(running_);
  for (const Running& process : ended)
    finish(process, Fate::kEnded);
  return has_received || !ended.empty();
}

void Processes::begin(pid_t pid, Fd fd) {
  auto checked = heap::SharedFile::check(std::move(fd));
  if (const auto* why = std::get_if<std::string>(&checked)) {
    listener_.refuse("that sent " + *why);
    return;
  }
  finish_of_pid(pid);
  if (const auto early = ended_early_.find(pid); early != ended_early_.end()) {
    ++went_on_;
    vanished_ -= early->second ? 1 : 0;
    ended_early_.erase(early);
  }
  auto& file = std::get<heap::SharedFile>(checked);
  file.set_tick(tick_, kTickMs);
  running_.push_back({pid, std::move(file), listener_.watch_end(pid), tick_});
}

void Processes::finish_of_pid(pid_t pid) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& process) { return process.pid == pid; });
  if (found == running_.end())
    return;
  const Running before = std::move(*found);
  running_.erase(found);
  finish(before, Fate::kBeganAnother);
}

void Processes::finish(const Running& process, Fate fate) {
  if (const auto heap = heap::read_heap(process.file)) {
    const bool has_vanished =
        fate == Fate::kEnded && heap->header.has_ended == 0 && !was_killed(process.ended);
    vanished_ += has_vanished ? 1 : 0;
    if (fate == Fate::kEnded && !listener_.is_listening())
      ended_early_[process.pid] = has_vanished;
    on_end_({process.pid, fate, *heap, process.began_tick});
  } else
    listener_.refuse("whose shared memory was damaged");
}

void Processes::tick(std::uint32_t tick) {
  tick_ = tick;
  for (const Running& process : running_)
    process.file.set_tick(tick, kTickMs);
}

void Processes::for_each_running(const OnHeap& on_heap) const {
  for (const Running& process : running_)
    if (const auto heap = heap::read_heap(process.file))
      on_heap({process.pid, Fate::kRuns, *heap, process.began_tick});
}

void Processes::leave(const OnHeap& on_heap) {
  bool is_all = false;
  while (!is_all) {
    pass();
    for_each_running(on_heap);
    is_all = listener_.is_listening() || running_.empty();
    running_.clear();
  }
  if (!listener_.is_listening())
    listener_.refuse("because no descriptor was left (ulimit -n)");
}

}  // namespace pe::malloctrace
