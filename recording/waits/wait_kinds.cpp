// SPDX-License-Identifier: MIT
#include "recording/waits/wait_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/io/input.h"
#include "base/parse_number.h"
#include "recording/bpf/call_kinds.h"
#include "recording/bpf/records.h"
#include "stream/proc/maps.h"

namespace pe::waits {
namespace {

using stream::WaitKind;

struct Call {
  std::uint32_t number;
  std::string_view name;
  WaitKind kind;
};
#define PE_CALL_OF(number, name, kind) Call{number, #name, static_cast<WaitKind>(unwind::kind)},
constexpr std::array kCalls = {PE_WAITING_CALLS(PE_CALL_OF)};
#undef PE_CALL_OF

// As has_no_descriptors() in times.bpf.h.
bool has_no_descriptors(std::uint32_t call, const std::array<std::uint64_t, 3>& arguments) {
  constexpr std::uint32_t kPoll = 7, kPpoll = 271, kSelect = 23, kPselect = 270;
  const auto& [second, third, fourth] = arguments;
  if (call == kPoll || call == kPpoll)
    return second == 0;
  return (call == kSelect || call == kPselect) && (second | third | fourth) == 0;
}

bool starts_with_any(std::string_view name, std::span<const std::string_view> starts) {
  return std::ranges::any_of(starts, [name](auto start) { return name.starts_with(start); });
}

/// The kernel's frames of a chain.
std::span<const std::uint64_t> kernel_part(const std::vector<std::uint64_t>& chain) {
  if (chain.empty() || chain.front() != PERF_CONTEXT_KERNEL)
    return {};
  const auto end = std::find(chain.begin(), chain.end(), PERF_CONTEXT_USER);
  return {chain.begin() + 1, end};
}

}  // namespace

std::string WaitKinds::load(std::uint64_t available) {
  constexpr std::uint64_t kMebibyte = 1 << 20, kNeeded = 20;  // 18 for 5.4 MB of /proc/kallsyms
  if (available < kNeeded * kMebibyte)
    return fmt::format(
        "{} MiB of memory are available (cgroup, ulimit -v), and the kernel's "
        "symbols need {}",
        available / kMebibyte, kNeeded);
  auto loaded = stream::Kallsyms::load();
  if (auto* symbols = std::get_if<stream::Kallsyms>(&loaded))
    symbols_ = std::move(*symbols);
  return {};
}

/// A system call whose own function ends in a jump is known by the one that it jumps to:
/// ksys_read(), do_futex(), __sys_recvmsg().
WaitKinds::Function WaitKinds::function_of(std::string_view name) {
  constexpr std::string_view kOwn = "__x64_sys_";
  static constexpr std::array<std::string_view, 7> kInner = {
      "ksys_", "__sys_", "do_sys_", "__do_sys_", "__se_sys_", "kernel_", "do_"};
  static constexpr std::array<std::string_view, 7> kLocks = {
      "__mutex_lock",  "rwsem_down_",     "percpu_rwsem_wait", "rt_mutex_slowlock",
      "__rt_mutex_sl", "rtlock_slowlock", "__down_common"};
  static constexpr std::array<std::string_view, 3> kStops = {"do_signal_stop", "ptrace_stop",
                                                             "do_freezer_trap"};
  // After a stop, calls go on in these.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOtherNames = {
      {{"hrtimer_nanosleep", "nanosleep"},
       {"futex_wait_restart", "futex"},
       {"do_restart_poll", "poll"},
       {"core_sys_select", "select"},
       {"kernel_clone", "clone"}}};
  if (name == "__schedule")
    return {.role = Role::kSwitches};
  if (starts_with_any(name, kLocks))
    return {.role = Role::kLocks};
  if (starts_with_any(name, kStops))
    return {.role = Role::kStops};
  if (name == "exc_page_fault" || name == "asm_exc_page_fault")
    return {.role = Role::kFaults};
  const bool is_own = name.starts_with(kOwn);
  std::string_view call;
  if (is_own)
    call = name.substr(kOwn.size());
  for (const std::string_view start : kInner)
    if (call.empty() && name.starts_with(start))
      call = name.substr(start.size());
  for (const auto& [inner, of_call] : kOtherNames)
    if (name.starts_with(inner))
      call = of_call;
  if (const auto* const found = std::ranges::find(kCalls, call, &Call::name); found != kCalls.end())
    return {.role = Role::kCalls, .kind = found->kind, .call = found->number};
  return {.role = is_own && call != "restart_syscall" ? Role::kCalls : Role::kOther};
}

WaitKinds::Function WaitKinds::find(std::uint64_t avma) {
  const auto [known, is_new] = functions_.try_emplace(avma);
  if (is_new && symbols_)
    if (const auto symbol = symbols_->find(avma - 1))
      known->second = function_of(symbol->name);
  return known->second;
}

WaitKind WaitKinds::kind_of(const std::vector<std::uint64_t>& chain, const WaitFacts& facts) {
  Function entry;  // the outermost
  bool has_lock = false, is_stopped = facts.state == 'T' || facts.state == 't';
  for (const std::uint64_t avma : kernel_part(chain)) {
    const Function function = find(avma);
    has_lock = has_lock || function.role == Role::kLocks;
    is_stopped = is_stopped || function.role == Role::kStops;
    if (function.role == Role::kFaults || function.role == Role::kCalls)
      entry = function;
  }
  if (!facts.has_program || is_stopped)
    return WaitKind::kOther;
  if (has_lock)
    return WaitKind::kLock;
  if (entry.role == Role::kFaults)
    return WaitKind::kFault;
  if (entry.kind == WaitKind::kOther && facts.state == 'D')
    return WaitKind::kIo;
  if (facts.arguments && has_no_descriptors(entry.call, *facts.arguments))
    return WaitKind::kSleep;
  return entry.kind;
}

void WaitKinds::trim(std::vector<std::uint64_t>& chain) {
  constexpr std::size_t kMost = 8;
  const auto frames = kernel_part(chain);
  for (std::size_t i = 0; i < std::min(kMost, frames.size()); ++i)
    if (find(frames[i]).role == Role::kSwitches) {
      const auto first = chain.begin() + 1;
      chain.erase(first, first + static_cast<std::ptrdiff_t>(i + 1));
      return;
    }
}

/// Its text starts with the number of the call; "-1": there is none.
std::optional<WaitKind> kind_of_waiting(pid_t pid, pid_t tid) {
  const auto status = stream::status_of(pid, tid);
  if (!status || status->state == 'R' || status->state == 'Z' || status->state == 'X')
    return std::nullopt;
  if (status->state == 'T' || status->state == 't')
    return WaitKind::kOther;
  constexpr std::size_t kMostBytes = 256;
  const std::string words =
      read_small_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid), kMostBytes).value_or("");
  const auto number = parse_number<std::uint32_t>(words.substr(0, words.find(' ')));
  const auto* const call =
      number ? std::ranges::find(kCalls, *number, &Call::number) : kCalls.end();
  if (call != kCalls.end())
    return call->kind;
  return status->state == 'D' ? WaitKind::kIo : WaitKind::kOther;
}

}  // namespace pe::waits
