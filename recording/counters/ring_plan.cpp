// SPDX-License-Identifier: MIT
#include "recording/counters/ring_plan.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "recording/bpf/records.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

namespace pe::recording {
namespace {

constexpr std::size_t kPageBytes = 4096;
/// The pages that an ordinary user may lock without further limits (perf_event_mlock_kb is 516).
constexpr std::size_t kSmallPages = 128;

/// Returns the largest copy that leaves the ring room for a twentieth of a second.
std::uint32_t stack_bytes_for(std::size_t ring_bytes, const Request& request) {
  if (!copies_stacks(request))
    return 0;
  if (request.engine == Engine::kBpf)
    return unwind::kPassedStackBytes;
  if (request.stack_bytes)
    return *request.stack_bytes;
  constexpr std::uint64_t kPerSecond = 20;
  constexpr std::uint64_t kFewest = 16;
  constexpr std::uint64_t kMost = 128;
  const std::uint64_t rate = request.period ? 0 : request.frequency_hz;
  const std::size_t samples = std::clamp(rate / kPerSecond, kFewest, kMost);
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(ring_bytes / samples / 8 * 8, kMaxStackBytes));
}

/// With stack copies, rings wake us every 10 ms, all CPUs together.  That is often enough to find
/// the rest of a deep stack in the process while it is unchanged.  Without copies, half a ring may
/// fill, which costs a tenth as much as a wake-up for each sample.
std::uint32_t watermark_for(const RingPlan& plan, const Request& request, std::size_t cpus) {
  if (request.wakes_at_once)
    return 1;
  // These rings have no samples.  A sample whose stack needs a mapping wakes us by itself.
  constexpr std::size_t kWakingShare = 8;
  if (request.engine == Engine::kBpf)
    return static_cast<std::uint32_t>(plan.ring_bytes() / kWakingShare);
  const std::size_t half = plan.ring_bytes() / 2;
  constexpr std::uint64_t kWakeUps = 100;
  constexpr std::uint64_t kRestOfSample = 256;
  std::size_t bytes = half;
  if (plan.stack_bytes > 0 && !request.period)
    bytes = std::max<std::uint64_t>(1, request.frequency_hz * cpus / kWakeUps) *
            (plan.stack_bytes + kRestOfSample);
  // A waiting thread's stack does not change, so a read soon after finds the part that its copy
  // lacks.
  constexpr std::uint64_t kSwitches = 64;
  if (plan.stack_bytes > 0 && request.with_switches)
    bytes = kSwitches * (plan.stack_bytes + kRestOfSample);
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(std::min(bytes, half), std::numeric_limits<std::uint32_t>::max()));
}

RingPlan plan_of(std::size_t pages, const Request& request, std::size_t cpus) {
  RingPlan plan{.pages = pages, .stack_bytes = 0, .watermark_bytes = 0};
  plan.stack_bytes = stack_bytes_for(plan.ring_bytes(), request);
  plan.watermark_bytes = watermark_for(plan, request, cpus);
  return plan;
}

}  // namespace

std::size_t RingPlan::ring_bytes() const noexcept { return pages * kPageBytes; }

std::size_t RingPlan::switch_pages() const noexcept { return std::max<std::size_t>(1, pages / 4); }

std::size_t RingPlan::switch_ring_bytes() const noexcept { return switch_pages() * kPageBytes; }

bool copies_stacks(const Request& request) noexcept {
  const bool is_wanted =
      request.call_graph == CallGraph::kAuto || request.call_graph == CallGraph::kDwarf;
  return is_wanted && !request.kernel_only && stream::wanted_user_regs() != 0;
}

RingPlan first_plan(const Request& request, std::size_t cpus) {
  std::size_t pages = kSmallPages;
  if (request.engine == Engine::kBpf)
    return plan_of(pages, request, cpus);
  if (copies_stacks(request) || request.with_switches) {
    constexpr std::size_t kLargePages = 4096;                             // 16 MiB
    constexpr std::size_t kAllBytes = std::size_t{512} << 20, kPart = 8;  // on all CPUs together
    const std::size_t all_pages = stream::share_of_memory(kAllBytes, kPart) / kPageBytes;
    const std::size_t most = std::bit_floor(all_pages / std::max<std::size_t>(1, cpus));
    // Threads that hand work to each other switch 100,000 times a second.
    const std::size_t wanted = request.with_switches ? 2 * kLargePages : kLargePages;
    pages = std::clamp(most, kSmallPages, wanted);
  }
  return plan_of(request.ring_pages.value_or(pages), request, cpus);
}

std::optional<RingPlan> smaller_plan(const RingPlan& plan, const Request& request,
                                     std::size_t cpus) {
  if (request.ring_pages || plan.pages <= kSmallPages)
    return std::nullopt;
  return plan_of(plan.pages / 2, request, cpus);
}

}  // namespace pe::recording
