// SPDX-License-Identifier: MIT
#include "recording/waits/bpf_requests.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "stream/proc/maps.h"

namespace pe::waits {
namespace {

/// Room for forwarded switches, each with up to 60 KiB of its stack.  The kernel gets new code
/// after we have read them.  In a larger ring more of them would wait while programs start, and the
/// kernel would forward more.
constexpr std::size_t kRingBytes = std::size_t{16} << 20;

/// A sample needs no haste.
constexpr std::size_t kWakeupBytes = std::size_t{1} << 16;

/// Returns the states as in LoadOptions::states.
std::uint32_t state_mask(const WaitChoice& choice) {
  constexpr std::uint32_t kPreempted = 1;
  if (choice.states.empty())
    return choice.with_preempted ? ~std::uint32_t{0} : ~kPreempted;
  constexpr std::string_view kLetters = "RSDTtXZPI";
  std::uint32_t mask = 0;
  for (const char letter : choice.states)
    mask |= std::uint32_t{1} << kLetters.find(letter);
  return mask;
}

std::uint32_t most_wakers(const WaitChoice& choice) {
  return choice.with_wakers ? unwind::kMaxWakers : choice.with_locks ? 1 : 0;
}

}  // namespace

std::unique_ptr<unwind::BpfObject> load_programs(const Options& options,
                                                 const recording::Target& target) {
  return unwind::load({.program = unwind::Program::kOnSwitch,
                       .with_kernel_stacks = !options.request.user_only && !options.only_locks(),
                       .with_kernel_threads = target.is_everything,
                       .with_user_stacks = !options.request.kernel_only,
                       .with_scripts = !options.request.kernel_only,
                       .max_wakers = most_wakers(options.choice),
                       .with_locks = options.choice.with_locks,
                       .only_locks = options.only_locks(),
                       .with_held = options.choice.with_held,
                       .only_targets = !target.is_everything,
                       .pass_on = unwind::kPassUnfinished,
                       .each_apart = !options.request.spans.empty(),
                       .with_times = options.with_cpu,
                       .with_samples = options.with_cpu,
                       .budget_percent = options.request.budget_percent,
                       .min_ns = options.choice.min_ns,
                       .max_ns = options.choice.max_ns,
                       .states = state_mask(options.choice),
                       .ring_bytes = kRingBytes,
                       .wakeup_bytes = options.with_cpu ? kWakeupBytes : 0});
}

recording::Request side_request(const recording::Request& asked) {
  recording::Request request;
  request.events = {"dummy"};
  request.period = 1;
  // Marks of calls have the layout of forwarded switches.
  request.spans = asked.spans;
  request.call_graph =
      asked.spans.empty() ? recording::CallGraph::kNone : recording::CallGraph::kDwarf;
  request.may_keep_binaries = asked.may_keep_binaries;
  request.trusts_all_binaries = asked.trusts_all_binaries;
  request.ring_pages = asked.ring_pages;
  request.wakes_at_once = true;
  request.of_cpus_only = true;
  return request;
}

recording::Request sample_request(const recording::Request& asked) {
  recording::Request request;
  request.events = {"cpu-clock"};
  request.frequency_hz = asked.frequency_hz;
  request.frequency_was_given = asked.frequency_was_given;
  request.period = asked.period;
  request.user_only = asked.user_only;
  request.call_graph = recording::CallGraph::kAuto;
  request.engine = recording::Engine::kBpf;
  request.ring_pages = 1;
  request.of_cpus_only = true;  // the counters of side_request() report all changes
  return request;
}

recording::Target whole_processes(const recording::Target& target) {
  recording::Target whole = target;
  for (const pid_t tid : std::exchange(whole.threads, {}))
    if (const auto status = stream::status_of(tid))
      whole.processes.push_back(status->pid);
  std::sort(whole.processes.begin(), whole.processes.end());
  whole.processes.erase(std::unique(whole.processes.begin(), whole.processes.end()),
                        whole.processes.end());
  if (whole.processes.empty() && !whole.is_wide())
    throw Error(why_not_found("no such process or thread"));
  return whole;
}

recording::Target with_sources(const recording::Target& target, const WaitChoice& choice) {
  return choice.with_wakers || choice.with_locks ? recording::Target{.is_everything = true}
                                                 : target;
}

}  // namespace pe::waits
