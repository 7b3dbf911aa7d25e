// Tells what a thread waits for by the kernel's functions in its call chain.  The engine perf uses
// this, because it does not see the system call.  The kernel's program finds the same
// (recording/bpf/times.bpf.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stream/proc/kallsyms.h"
#include "stream/proc/own_rights.h"
#include "stream/records/record.h"

namespace pe::waits {

/// Facts about a thread that leaves its CPU, besides its call chain.
struct WaitFacts {
  bool is_of_cpu = false;   ///< it does not leave its CPU: this is a sample of CPU time
  bool has_program = true;  ///< it is no thread of the kernel
  /// The second to fourth argument of its system call; nullopt: unknown.
  std::optional<std::array<std::uint64_t, 3>> arguments = {};
  char state = '?';  ///< its letter in ps(1)
};

class WaitKinds {
 public:
  explicit WaitKinds(std::optional<stream::Kallsyms> symbols = {}) : symbols_(std::move(symbols)) {}
  /// Reads the kernel's symbols, which takes 70 ms.  Without them, only states are known.  Returns
  /// why they were left out for lack of memory; empty if there is enough.
  std::string load(std::uint64_t available = stream::available_memory());
  /// Returns what the thread waits for; it was not preempted.
  [[nodiscard]] stream::WaitKind kind_of(const std::vector<std::uint64_t>& chain,
                                         const WaitFacts& facts);
  /// Removes the kernel's frames that record the switch, up to __schedule().
  void trim(std::vector<std::uint64_t>& chain);

 private:
  enum class Role : std::uint8_t { kOther, kSwitches, kLocks, kStops, kFaults, kCalls };
  struct Function {
    Role role = Role::kOther;
    stream::WaitKind kind = stream::WaitKind::kOther;  ///< kCalls: what the call waits for
    std::uint32_t call = 0;                            ///< likewise: its number
  };

  static Function function_of(std::string_view name);
  Function find(std::uint64_t avma);

  std::optional<stream::Kallsyms> symbols_;
  std::unordered_map<std::uint64_t, Function> functions_;  ///< by return address
};

/// Returns what a thread waits for that has left its CPU before, by /proc; nullopt: it runs, or
/// could, or has ended.
std::optional<stream::WaitKind> kind_of_waiting(pid_t pid, pid_t tid);

}  // namespace pe::waits
