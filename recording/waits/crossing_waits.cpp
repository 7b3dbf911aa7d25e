// Waits that cross the start or the end of a recording by the engine bpf.
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/clock.h"
#include "recording/waits/bpf_engine.h"
#include "recording/waits/earlier_waits.h"

namespace pe::waits {

/// Copies and walks the stacks of threads that wait since before the recording.  If the recording
/// is to end meanwhile, the others have no stacks.
void BpfEngine::hold_earlier_waits() {
  constexpr std::size_t kMostHeldBytes = std::size_t{4} << 20;
  for (const unwind::EarlierWait& wait : object_->take_earlier_waits()) {
    budget_.look(monotonic_ns());
    if (budget_.has_ended())
      break;
    if (is_wanted(wait.outstanding.key.tid))
      hold_earlier(wait, object_->stack(wait.outstanding.key.kernel_stack), scripts_.reader(),
                   budget_, recording_->passed);
    if (recording_->passed.held_bytes() >= kMostHeldBytes)
      walk_passed(began_ns_);
  }
  walk_passed(began_ns_);
}

/// Holds the time at the end in which no thread has run, as one of the wait that began it.  If no
/// thread waits, all have ended, and the recording's time ended with them.
void BpfEngine::add_last_silence() {
  ended_ns_ = stopped_ns_;
  if (!has_elapsed_time() || silent_ns_ == 0 || silent_ns_ >= stopped_ns_)
    return;
  const auto last = std::ranges::max_element(unfinished_, {}, &unwind::Outstanding::since_ns);
  if (last == unfinished_.end()) {
    ended_ns_ = silent_ns_;
    return;
  }
  hold_unfinished(*last, stopped_ns_ - silent_ns_, kSilenceId);
}

/// Holds the last `length_ns` of a wait that has not ended.
void BpfEngine::hold_unfinished(const unwind::Outstanding& wait, std::uint64_t length_ns,
                                std::uint64_t event) {
  const auto& [key, since_ns] = wait;
  recording_->waits.hold({stopped_ns_,
                          key.tgid,
                          key.tid,
                          length_ns,
                          1,
                          stack_of_wait(key, since_ns, stopped_ns_),
                          true,
                          {},
                          key.lock,
                          key.kind,
                          event});
}

void BpfEngine::add_unfinished() {
  add_last_silence();
  for (const unwind::Outstanding& wait : unfinished_) {
    const unwind::SumKey& key = wait.key;
    const std::uint64_t length_ns = stopped_ns_ - std::min(stopped_ns_, wait.since_ns);
    if (!is_wanted(key.tid) || length_ns == 0 || length_ns < choice_.min_ns ||
        length_ns > choice_.max_ns)
      continue;
    threads_seen_.insert(key.tid);
    see(key.tgid);
    hold_unfinished(wait, length_ns, 0);
  }
}

}  // namespace pe::waits
