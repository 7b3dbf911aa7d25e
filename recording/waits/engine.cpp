// SPDX-License-Identifier: MIT
#include "recording/waits/engine.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "recording/abilities.h"
#include "recording/refused.h"
#include "recording/waits/bpf_engine.h"
#include "recording/waits/bpf_requests.h"
#include "recording/waits/perf_engine.h"
#include "stream/proc/maps.h"

namespace pe::waits {

std::unique_ptr<Engine> make_engine(const Options& options, const recording::Target& target,
                                    Budget& budget,
                                    const std::function<void(const std::string&)>& note) {
  if (options.engine == EngineChoice::kPerf)
    return std::make_unique<PerfEngine>(
        options, target, budget,
        BpfEngine::why_unable(target).empty() && recording::why_no_bpf().empty());
  const auto& choice = options.choice;
  const bool is_wanted =
      options.engine == EngineChoice::kBpf || choice.with_wakers || choice.with_locks;
  const std::string_view asked = choice.with_locks    ? "--locks needs the bpf engine"
                                 : choice.with_wakers ? "--wakers needs the bpf engine"
                                                      : "--engine bpf";
  const std::string unable = BpfEngine::why_unable(target);
  if (is_wanted && !unable.empty())
    throw Error(fmt::format("{}: {}", asked, unable));
  std::string problem;
  recording::Refusal refusal;
  if (unable.empty()) {
    std::unique_ptr<unwind::BpfObject> object;
    try {
      object = load_programs(options, target);
    } catch (const Error& error) {
      problem = error.what();
      refusal = recording::refusal_of(error);
    }
    if (object)
      return std::make_unique<BpfEngine>(options, target, std::move(object), budget);
    if (is_wanted)
      throw recording::Refused(fmt::format("{}: {}", asked, problem), refusal);
  }
  auto engine = std::make_unique<PerfEngine>(options, target, budget, false);
  if (!problem.empty())  // if perf does not work either, its error is the only message
    note(fmt::format("the bpf engine does not work here; using perf: {}", problem));
  return engine;
}

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

void describe_silent_threads(std::uint64_t count, bool sees_earlier, Closing& closing) {
  if (count == 0)
    return;
  const std::string threads = plural(count, "thread");
  if (sees_earlier)
    return closing.doubt(
        fmt::format("{} without a wait that was wanted", threads),
        "record longer, or the waits that --preempted, --state, --min-us and --max-us leave out");
  closing.doubt(fmt::format("{} without a finished wait, because {} ran or still {}", threads,
                            count == 1 ? "it" : "they", count == 1 ? "waits" : "wait"),
                closing.summary.empty() ? "with this engine a wait that began before the recording "
                                          "is recorded only when it ends; "
                                          "to see it now: use --engine bpf, or pe-record --engine "
                                          "ptrace --clock wall -p PID -d 1 "
                                          "| pe-symbolize | stackfold"
                                        : "record longer");
}

}  // namespace pe::waits
