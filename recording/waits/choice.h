// Which waits are recorded, and how.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "recording/request.h"

namespace pe::waits {

/// The stack that comes first in pictures of waits for locks.
enum class Blame : std::uint8_t { kHolder, kWaiter };

/// Which waits are wanted.
struct WaitChoice {
  std::uint64_t min_ns = 0, max_ns = std::numeric_limits<std::uint64_t>::max();
  /// Letters as ps(1) has them: "SD"; empty: all.
  std::string states = {};
  bool with_preempted = false;  ///< those of threads that were ready to run on, too
  bool with_wakers = false;     ///< and who ended each
  bool with_locks = false;      ///< and each lock, and who released it; alone: only waits for locks
  Blame blame = Blame::kHolder;  ///< with_locks
  bool with_held = false;        ///< with_locks: times of holding, in place of waits
};

enum class EngineChoice : std::uint8_t { kAuto, kPerf, kBpf };

/// Returns what a target did that ran but has no such waits: "did not wait …".
std::string_view describe_no_waits(const WaitChoice& choice);

/// A recording of waits.
struct Options {
  recording::Request request;
  WaitChoice choice;
  bool with_cpu = false;  ///< also samples CPU time, at the request's rate
  EngineChoice engine = EngineChoice::kAuto;

  [[nodiscard]] bool only_locks() const noexcept { return choice.with_locks && !with_cpu; }
};

}  // namespace pe::waits
