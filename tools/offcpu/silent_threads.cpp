// SPDX-License-Identifier: MIT
#include "offcpu/silent_threads.h"

#include <fmt/format.h>

#include <vector>

#include "base/plural.h"
#include "stream/proc/maps.h"

namespace pe::offcpu {

std::uint64_t count_silent_threads(const recording::Target& target,
                                   const std::function<bool(std::uint32_t tid)>& has_seen) {
  std::vector<pid_t> threads = target.threads;
  for (const pid_t pid : target.processes)
    for (const pid_t tid : stream::threads_of(pid))
      threads.push_back(tid);
  std::uint64_t count = 0;
  for (const pid_t tid : threads) {
    if (has_seen(static_cast<std::uint32_t>(tid)))
      continue;
    const auto status = stream::status_of(tid);
    if (status && status->state != 'Z')  // a zombie has ended
      ++count;
  }
  return count;
}

void describe_silent_threads(std::uint64_t count, Closing& closing) {
  if (count > 0)
    closing.doubt(
        fmt::format("{} without a finished wait, because {} ran or still {}",
                    plural(count, "thread"), count == 1 ? "it" : "they",
                    count == 1 ? "waits" : "wait"),
        closing.summary.empty()
            ? "a wait that began before the recording is recorded only when it ends; to see it "
              "now: pe-record --engine ptrace --clock wall -p PID -d 1 | pe-symbolize | stackfold"
            : "record longer");
}

}  // namespace pe::offcpu
