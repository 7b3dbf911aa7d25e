// SPDX-License-Identifier: MIT
#include "recording/bpf/settings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unwinder.skel.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "recording/refused.h"
#include "stream/proc/own_rights.h"

namespace pe::unwind {

LoadOptions fitted(LoadOptions options) {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{40} << 20, kMebibyte = 1 << 20;
  const std::uint64_t available = stream::available_memory();
  if (available < kLeastBytes)
    throw recording::Refused(
        fmt::format("eBPF: {} MiB of memory are available (cgroup, ulimit -v), and its tables need "
                    "{}",
                    available / kMebibyte, kLeastBytes / kMebibyte));
  constexpr std::uint64_t kPart = 16;
  options.stack_bytes = std::min(options.stack_bytes, available / kPart);
  options.ring_bytes = std::min(options.ring_bytes, std::bit_floor(available / kPart));
  options.wakeup_bytes = std::min(options.wakeup_bytes, options.ring_bytes / 2);
  options.max_sums = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.max_sums, available / kPart / (2 * sizeof(KeyedSum))));
  return options;
}

namespace {

/// Returns the number of blocks of a half.
std::uint32_t stack_room(const LoadOptions& options) {
  constexpr std::size_t kMost = std::size_t{1} << 29;
  const std::size_t half = std::min(options.stack_bytes / sizeof(StackBlock) / 2, kMost);
  return options.stack_bytes == 0
             ? 0
             : static_cast<std::uint32_t>(std::bit_floor(std::max(half, std::size_t{1})));
}

void choose_programs(unwinder& skeleton, const LoadOptions& options) {
  const auto& programs = skeleton.progs;
  const bool is_of_switches = options.program == Program::kOnSwitch;
  bpf_program__set_autoload(programs.on_hit, options.with_probes);
  bpf_program__set_autoload(programs.on_sample, !is_of_switches || options.with_samples);
  bpf_program__set_autoload(programs.on_switch, is_of_switches);
  bpf_program__set_autoload(programs.on_waking, is_of_switches && options.max_wakers > 0);
  for (bpf_program* of_kernel_lock : {programs.on_lock_wait, programs.on_lock_taken})
    bpf_program__set_autoload(of_kernel_lock, is_of_switches && options.with_times);
  bpf_program__set_autoload(programs.on_call, is_of_switches && options.with_held);
  for (bpf_program* of_states : {programs.on_each_task, programs.on_each_reference})
    bpf_program__set_autoload(of_states, is_of_switches);
  bpf_program__set_autoload(programs.on_earlier_wait, is_of_switches && !options.with_held);
}

}  // namespace

void configure(unwinder& skeleton, const LoadOptions& options) {
  auto& settings = *skeleton.rodata;
  settings.only_targets = static_cast<std::uint32_t>(options.only_targets);
  settings.with_kernel_stacks = static_cast<std::uint32_t>(options.with_kernel_stacks);
  settings.with_kernel_threads = static_cast<std::uint32_t>(options.with_kernel_threads);
  settings.with_user_stacks = static_cast<std::uint32_t>(options.with_user_stacks);
  settings.with_scripts = static_cast<std::uint32_t>(options.with_scripts);
  const bool has_locks = options.with_locks || options.only_locks;
  settings.with_locks = static_cast<std::uint32_t>(has_locks);
  settings.only_locks = static_cast<std::uint32_t>(options.only_locks);
  settings.with_held = static_cast<std::uint32_t>(options.with_held);
  settings.with_times = static_cast<std::uint32_t>(options.with_times);
  settings.with_wakers = options.max_wakers > (has_locks ? 1U : 0U) ? 1 : 0;
  settings.max_wakers = std::clamp<std::uint32_t>(options.max_wakers, 1, kMaxWakers);
  settings.pass_on = options.pass_on;
  settings.each_apart = static_cast<std::uint32_t>(options.each_apart);
  settings.with_reuse = static_cast<std::uint32_t>(options.with_reuse);
  settings.check_reuse = static_cast<std::uint32_t>(options.check_reuse);
  settings.budget_percent = options.budget_percent;
  settings.min_ns = options.min_ns;
  settings.max_ns = options.max_ns;
  settings.state_mask = options.states;
  settings.stack_room = stack_room(options);
  settings.wakeup_bytes = options.wakeup_bytes;
  const auto cpus = static_cast<std::uint32_t>(libbpf_num_possible_cpus());
  const bool is_of_switches = options.program == Program::kOnSwitch;
  bpf_map__set_max_entries(skeleton.maps.scratches, cpus * 3);  // kScratchesOfCpu
  bpf_map__set_max_entries(skeleton.maps.script_scratches,
                           !is_of_switches || options.with_scripts ? cpus : 1);
  bpf_map__set_max_entries(skeleton.maps.stacks, std::max(2 * settings.stack_room, 1U));
  bpf_map__set_max_entries(skeleton.maps.stack_numbers, std::max(settings.stack_room, 1U));
  settings.samples_are_whole = static_cast<std::uint32_t>(options.with_samples);
  settings.sum_room = is_of_switches ? std::bit_ceil(options.max_sums + 1) : 0;
  bpf_map__set_max_entries(skeleton.maps.sums, std::max(2 * settings.sum_room, 1U));
  // A renewal removes old numbers only after new ones have come.
  bpf_map__set_max_entries(skeleton.maps.sum_numbers, std::max(2 * settings.sum_room, 1U));
  if (!is_of_switches || options.pass_on != kPassNothing)
    bpf_map__set_max_entries(skeleton.maps.ring, static_cast<std::uint32_t>(options.ring_bytes));
  if (options.with_probes)
    bpf_map__set_max_entries(skeleton.maps.hit_scratches, cpus * 4);  // kHitScratches
  choose_programs(skeleton, options);
}

}  // namespace pe::unwind
