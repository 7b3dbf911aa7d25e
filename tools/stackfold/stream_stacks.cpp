// SPDX-License-Identifier: MIT
#include "stackfold/stream_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

#include "stream/records/record.h"

namespace pe::fold {
namespace {

struct Waiter {
  std::string_view prefix;  ///< of a function's name, without leading underscores
  std::string_view kind;  ///< empty: the function of a lock, but one of its callers shows the kind
};

constexpr std::string_view kOther = "futex";
constexpr std::string_view kThread = "thread";

// glibc (nptl), musl, C11, libstdc++, Rust (std::sys), parking_lot, Go (runtime/lock_futex.go),
// HotSpot.
constexpr Waiter kWaiters[] = {
    {"pthread_mutex_", "mutex"},
    {"lll_lock_", "mutex"},
    {"lll_mutex_", "mutex"},
    {"mtx_", "mutex"},
    {"pthread_cond_", "condition variable"},
    {"cnd_", "condition variable"},
    {"pthread_rwlock_", "read-write lock"},
    {"sem_", "semaphore"},
    {"new_sem_", "semaphore"},
    {"pthread_join", kThread},
    {"pthread_clockjoin", kThread},
    {"pthread_timedjoin", kThread},
    {"thrd_join", kThread},
    {"std::thread::join", kThread},
    {"pthread_barrier_", "barrier"},
    {"pthread_once", "once"},
    {"std::__atomic_futex_unsigned", "future"},
    {"std::sys::sync::mutex", "mutex"},
    {"std::sys::unix::locks::futex_mutex", "mutex"},
    {"std::sys::unix::locks::futex::Mutex", "mutex"},
    {"std::sys::sync::condvar", "condition variable"},
    {"std::sys::sync::rwlock", "read-write lock"},
    {"std::sys::sync::once", "once"},
    {"std::sys::sync::thread_parking", "parked thread"},
    {"parking_lot::raw_mutex", "mutex"},
    {"parking_lot::raw_rwlock", "read-write lock"},
    {"parking_lot::condvar", "condition variable"},
    {"runtime.lock", "mutex"},
    {"runtime.note", "note"},
    {"syscall", ""},
    {"internal_syscall_cancel", ""},  // glibc 2.41
    {"do_futex_wait", ""},
    {"futex", ""},
    {"lll_", ""},
    {"pthread_", ""},
    {"GI_", ""},
    {"timedwait", ""},
    {"gthread_", ""},
    {"os::Platform", ""},
    {"Monitor::wait", ""},
    {"ObjectMonitor::", ""},
    {"ObjectSynchronizer::", ""},
    {"Parker::", ""},
    {"std::", ""},
    {"parking_lot::", ""},
    {"runtime.futex", ""},
};

/// Removes a module, as in "libc.so.6`sem_wait", and leading underscores.
std::string_view bare_name(std::string_view frame) {
  if (const auto end = frame.find('`'); end != frame.npos)
    frame.remove_prefix(end + 1);
  for (;;) {
    frame.remove_prefix(std::min(frame.find_first_not_of('_'), frame.size()));
    if (!frame.starts_with("GI_"))
      return frame;
    frame.remove_prefix(3);
  }
}

/// Returns null if the frame is not a function that waits for locks.
const Waiter* waiter_of(std::string_view frame) {
  const std::string_view name = bare_name(frame);
  const auto* found =
      std::find_if(std::begin(kWaiters), std::end(kWaiters),
                   [name](const Waiter& waiter) { return name.starts_with(waiter.prefix); });
  return found == std::end(kWaiters) ? nullptr : found;
}

/// A place in a library without symbols: "libc.so.6+0x8ea40".
bool is_unnamed_library_code(std::string_view frame) {
  return frame.find(".so") != frame.npos && frame.find("+0x") != frame.npos;
}

bool is_place(std::string_view frame) {
  return !frame.ends_with("_[k]") && !frame.starts_with("[unknown]") &&
         !is_unnamed_library_code(frame);
}

/// What the stack of a waiting thread shows.
struct Seen {
  std::string_view kind;
  std::string_view caller;  ///< the innermost function that is not of a lock
};

Seen examine(std::span<const std::string_view> leaf_first) {
  Seen seen{};
  for (const std::string_view frame : leaf_first) {
    const Waiter* waiter = waiter_of(frame);
    if (waiter != nullptr && seen.kind.empty())
      seen.kind = waiter->kind;
    if (waiter == nullptr && is_place(frame)) {
      seen.caller = frame;
      break;
    }
  }
  return seen;
}

/// The kinds of glibc of which several words are futexes.  All are names of one lock, so each is
/// counted from a multiple of eight.
bool has_several_words(std::string_view kind) {
  return kind == "condition variable" || kind == "read-write lock";
}

/// Removes a small offset from "g_condition+0x28", and rounds a larger one.
std::string without_word(std::string_view variable) {
  constexpr std::uint64_t kLargest = 56;  // of glibc's types: that of pthread_rwlock_t
  const auto plus = variable.rfind("+0x");
  std::uint64_t offset = 0;
  if (plus == variable.npos)
    return std::string(variable);
  const char* const end = variable.data() + variable.size();
  if (std::from_chars(variable.data() + plus + 3, end, offset, 16).ptr != end)
    return std::string(variable);
  const std::string_view name = variable.substr(0, plus);
  return offset < kLargest ? std::string(name) : fmt::format("{}+{:#x}", name, offset & ~7ULL);
}

}  // namespace

std::string LockNames::name(std::uint32_t pid, std::uint64_t address, std::string_view variable,
                            std::span<const std::string_view> leaf_first) {
  const auto [seen_kind, caller] = examine(leaf_first);
  const bool is_of_thread = (address & stream::kEndOfThreadBit) != 0;
  const std::string_view kind = !seen_kind.empty() ? seen_kind : is_of_thread ? kThread : kOther;
  const std::string_view place = caller.empty() ? "an unknown place" : caller;
  if (kind == kThread)  // new threads get the memory of ended ones
    return fmt::format("[thread joined at {}]", place);
  if (!variable.empty())
    return fmt::format("[{} {}]", kind,
                       has_several_words(kind) ? without_word(variable) : std::string(variable));
  const std::uint64_t ignored = has_several_words(kind) ? 7 : stream::kEndOfThreadBit;
  const auto [first, is_new] = first_waits_.try_emplace({pid, address & ~ignored, kind});
  if (is_new)
    first->second = fmt::format("[{} first waited for at {}]", kind, place);
  return first->second;
}

bool LockNames::can_be_held(std::string_view name) { return name.starts_with("[mutex "); }

}  // namespace pe::fold
