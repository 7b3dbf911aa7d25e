// SPDX-License-Identifier: MIT
#include "malloctrace/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/clock.h"

namespace pe::malloctrace {

bool Interrupts::goes_on_after(const StopSignal& signal, std::uint64_t now_ns) {
  if (signal.number != SIGINT)
    return false;
  // For example, timeout(1) sends the same signal twice: to us and to our group.
  constexpr std::uint64_t kSameSignalNs = 500'000'000;
  if (first_ns_ != 0)
    return now_ns - first_ns_ < kSameSignalNs;
  first_ns_ = now_ns;
  const bool has_got_it = signal.is_from_terminal && ::getpgid(command_.pid()) == ::getpgrp();
  // The command is not reaped, so its process id is still valid.
  if (!has_got_it && !command_.poll_status())
    ::kill(command_.pid(), SIGINT);
  return true;
}

bool Interrupts::is_time_to_tell(std::uint64_t now_ns) {
  constexpr std::uint64_t kPatienceNs = kNsPerSecond;
  return first_ns_ != 0 && now_ns - first_ns_ >= kPatienceNs && !std::exchange(was_told_, true);
}

}  // namespace pe::malloctrace
