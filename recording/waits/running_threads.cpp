// SPDX-License-Identifier: MIT
#include "recording/waits/running_threads.h"

#include <algorithm>
#include <utility>

namespace pe::waits {

RunningThreads::Silence RunningThreads::start(std::uint32_t pid, std::uint32_t tid,
                                              std::uint64_t now_ns) {
  Thread& thread = threads_[tid];
  thread.pid = pid;
  if (thread.since_ns != 0)
    return {};
  thread.since_ns = now_ns;
  running_.push_back(tid);
  const Silence before = silence();
  silent_ns_ = 0;
  return before.since_ns < now_ns ? before : Silence{};
}

void RunningThreads::stop(std::uint32_t tid, std::uint64_t now_ns) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() || found->second.since_ns == 0)
    return;
  Thread& thread = found->second;
  thread.unsampled_ns += now_ns - std::min(now_ns, std::exchange(thread.since_ns, 0));
  std::erase(running_, tid);
  if (running_.empty())
    silent_ns_ = now_ns;
}

std::uint64_t RunningThreads::sample(std::uint32_t pid, std::uint32_t tid, std::uint64_t now_ns,
                                     std::uint64_t period_ns) {
  Thread& thread = threads_[tid];
  const std::uint64_t unsampled_ns = std::exchange(thread.unsampled_ns, 0);
  if (thread.since_ns == 0) {
    start(pid, tid, now_ns);
    return period_ns;
  }
  return unsampled_ns + now_ns - std::min(now_ns, std::exchange(thread.since_ns, now_ns));
}

RunningThreads::Rest RunningThreads::end(std::uint32_t tid, std::uint64_t now_ns) {
  stop(tid, now_ns);
  const auto found = threads_.find(tid);
  if (found == threads_.end())
    return {};
  Rest rest{found->second.pid, tid, found->second.unsampled_ns, std::move(found->second.stack)};
  threads_.erase(found);
  return rest;
}

void RunningThreads::execute(std::uint32_t pid, std::uint32_t tid, std::uint64_t now_ns) {
  const std::vector<std::uint32_t> before = running_;
  for (const std::uint32_t other : before)
    if (other != tid && threads_[other].pid == pid) {
      Rest rest = end(other, now_ns);
      threads_[tid].unsampled_ns += rest.ns;
    }
  start(pid, tid, now_ns);
}

void RunningThreads::lose(std::uint64_t now_ns, std::uint64_t until_ns) {
  for (const std::uint32_t tid : std::exchange(running_, {}))
    threads_[tid].since_ns = 0;
  if (silent_ns_ == 0)
    silent_ns_ = now_ns;
  lost_until_ns_ = std::max(lost_until_ns_, until_ns);
}

std::vector<RunningThreads::Rest> RunningThreads::finish(std::uint64_t now_ns) {
  std::vector<std::uint32_t> tids;
  for (const auto& [tid, thread] : threads_)
    tids.push_back(tid);
  std::ranges::sort(tids);
  std::vector<Rest> rests;
  for (const std::uint32_t tid : tids)
    rests.push_back(end(tid, now_ns));
  return rests;
}

}  // namespace pe::waits
