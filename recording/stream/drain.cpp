// SPDX-License-Identifier: MIT
#include "recording/stream/drain.h"

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "stream/user_copy.h"

namespace pe::recording {
namespace {

constexpr std::uint64_t kLeastPeriodNs = 1'000'000;

}  // namespace

DeepPace::DeepPace(const perf_event_attr& attr)
    : period_ns_(attr.freq != 0 && attr.sample_freq != 0 ? kNsPerSecond / attr.sample_freq
                                                         : kLeastPeriodNs) {}

void DeepPace::see(const stream::Sample& sample, std::size_t used_bytes) noexcept {
  if (!sample.has_user_copy())
    return;
  last_ns_ = std::max(last_ns_, sample.time_ns);
  // Detects deep stacks before they outgrow their copies: the missing part is available only while
  // the stack is unchanged.
  if (4 * used_bytes > 3 * sample.user_stack_limit)
    last_deep_ns_ = std::max(last_deep_ns_, sample.time_ns);
}

std::optional<std::uint64_t> DeepPace::wait_ns(std::uint64_t now_ns) const noexcept {
  constexpr std::uint64_t kPeriods = 3;
  if (last_deep_ns_ == 0 ||
      last_ns_ > last_deep_ns_ + kPeriods * std::max(period_ns_, kLeastPeriodNs))
    return std::nullopt;
  // If samples arrive regularly, a poll right after the next one is enough.
  constexpr std::uint64_t kAfterNs = 50'000;
  const std::uint64_t next_ns = last_ns_ + period_ns_ + kAfterNs;
  if (next_ns > now_ns)
    return next_ns - now_ns;
  // The sample is overdue: others have the CPU, or the thread sleeps.  The longer that takes, the
  // more rarely we poll.  When the thread continues, we are late by a quarter of its pause.
  constexpr std::uint64_t kSoonNs = 250'000, kLateNs = 250'000'000, kShare = 4;
  return std::clamp((now_ns - last_ns_) / kShare, kSoonNs, kLateNs);
}

namespace {

/// A thread that ends has lost its number by its last samples (perf_event_tid(),
/// kernel/events/core.c).
constexpr std::uint32_t kNoTid = 0xffffffff;

}  // namespace

/// Keeps passes at least kLeastNs apart, because an engine's rings wake us with every record.
/// Samples are taken meanwhile: names must be read while functions exist.
void Drain::pause(std::vector<stream::Ring>& rings) {
  constexpr std::uint64_t kLeastNs = 2'000'000;
  if (engine_ == nullptr)
    return;
  pollfd samples{.fd = engine_->ring_fd(), .events = POLLIN, .revents = 0};
  std::uint64_t passed_ns = 0;
  while ((passed_ns = monotonic_ns() - pass_began_ns_) < kLeastNs) {
    take(rings);
    const timespec rest{0, static_cast<long>(kLeastNs - passed_ns)};
    ::ppoll(&samples, 1, &rest, nullptr);
  }
}

void Drain::pass(std::vector<stream::Ring>& rings, std::uint64_t complete_ns) {
  pause(rings);
  last_pass_began_ns_ = std::exchange(pass_began_ns_, monotonic_ns());
  complete_ns_ = complete_ns;
  take(rings);
  write_until(std::min(last_pass_began_ns_, complete_ns), rings);
  // The last pass left only records in the rings that were older than its start.  All of these have
  // been written by now.
  seen_by_last_pass_.resize(rings.size());
  for (std::size_t i = 0; i < rings.size(); ++i)
    rings[i].release(std::exchange(seen_by_last_pass_[i], rings[i].seen()));
  if (engine_ != nullptr)
    engine_->catch_up(stream_, last_pass_began_ns_, [&] { take(rings); });
  constexpr std::uint64_t kFlushNs = 200'000'000;
  if (pass_began_ns_ - last_flush_ns_ >= kFlushNs) {
    stream_.writer().flush();
    last_flush_ns_ = pass_began_ns_;
  }
}

void Drain::finish(std::vector<stream::Ring>& rings) {
  // Also writes records that arrive meanwhile, and those that had no room before.
  do {
    take(rings);
    write_until(kNoLimit, rings);
  } while (held_.has_waiting() || !has_taken_all_);
  stream_.finish_thinned();
}

void Drain::take(std::vector<stream::Ring>& rings) {
  last_ns_.resize(rings.size());
  for (std::size_t i = 0; i < rings.size(); ++i) {
    stream::Ring& ring = rings[i];
    has_taken_all_ = held_.bytes() < kMaxHeldBytes;
    if (!has_taken_all_)
      return;
    ring.look([&](const stream::Record& record, bool stays) {
      hold(record, stays && ring.is_roomy(), last_ns_[i]);
    });
  }
  std::uint64_t ignored_ns = 0;  // only rings report losses
  if (engine_ != nullptr && held_.bytes() < kMaxHeldBytes)
    engine_->take(stream_, [&](const stream::Record& record) { hold(record, false, ignored_ns); });
  if (held_.in_place() == 0)
    for (stream::Ring& ring : rings)
      ring.release(ring.seen());
}

void Drain::hold(const stream::Record& record, bool may_stay, std::uint64_t& last_ns) {
  stream_.budget().look(monotonic_ns());
  if (const auto time_ns = time_of_behind(record)) {
    has_behind_ = true;
    return held_.hold(*time_ns, {record.bytes});
  }
  if (const auto time_ns = languages::time_of_script(record))
    return held_.hold(*time_ns, {record.bytes});
  const std::uint64_t time_ns = stream::time_of(record, attr_);
  const std::uint64_t before_ns = std::exchange(last_ns, time_ns);
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      if (stream_.is_mark(record)) {
        ++passed_.marks;
        return held_.hold(time_ns, {record.bytes});
      }
      ++passed_.samples;
      if (const auto sample = stream::parse_sample(record, attr_)) {
        if (sample->tid != kNoTid)
          passed_.threads.insert(sample->tid);
        passed_.processes.insert(sample->pid);
        return hold_sample(record, *sample, may_stay);
      }
      break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
      passed_.lost.add(record, time_ns);
      if (reports_losses_early_)
        return held_.hold(before_ns, {record.bytes});
      break;
    case PERF_RECORD_THROTTLE:
      ++passed_.throttled;
      break;
    default:
      break;
  }
  last_change_ns_ = std::max(last_change_ns_, time_ns);
  const stream::Record named = command_lines_ ? command_lines_->completed(record) : record;
  held_.hold(time_ns, {file_ids_.completed(named).bytes});
}

void Drain::hold_sample(const stream::Record& record, const stream::Sample& sample, bool may_stay) {
  const auto behind =
      std::exchange(has_behind_, false) ? unwind::Behind{} : stream_.read_behind(sample);
  if (!behind.bytes.empty())
    make_behind_records(behind, sample.time_ns,
                        [&](auto pieces) { held_.hold(sample.time_ns, pieces); });
  pace_.see(sample, stream_.used_of_copy(sample));
  // The next pass will write the sample if it is older than this pass, and records are complete.
  if (may_stay && stream_.unwinder() != nullptr &&
      sample.time_ns <= std::min(pass_began_ns_, complete_ns_))
    held_.hold_in_place(sample.time_ns, record.bytes);
  else
    stream::hold_trimmed(record, sample, held_);
}

std::optional<std::uint64_t> Drain::urgency_ns() const {
  if (engine_ != nullptr) {
    constexpr std::uint64_t kSoonNs = 4'000'000;
    const bool is_behind = last_change_ns_ > last_pass_began_ns_ || engine_->is_behind();
    if (is_behind)
      return kSoonNs;
  }
  constexpr std::uint64_t kHurryNs = 10'000'000;
  const bool hurries = stream_.take_hurry();
  const auto of_pace = engine_ == nullptr && stream_.continues_stacks()
                           ? pace_.wait_ns(monotonic_ns())
                           : std::nullopt;
  return hurries ? std::min(of_pace.value_or(kHurryNs), kHurryNs) : of_pace;
}

void Drain::write_until(std::uint64_t time_ns, std::vector<stream::Ring>& rings) {
  held_.make_ready(time_ns);
  constexpr std::size_t kBatch = 64;
  for (std::size_t written = 0; const auto next = held_.next(); ++written) {
    // A round is closed when the next one starts.  So the stream of a killed recorder does not end
    // like a complete one.
    if (written == 0 && round_is_open_)
      stream_.writer().write_finished_round();
    round_is_open_ = true;
    stream_.write(next->record);
    stream_.budget().look(monotonic_ns());
    if (written % kBatch == kBatch - 1)
      take(rings);
  }
}

}  // namespace pe::recording
