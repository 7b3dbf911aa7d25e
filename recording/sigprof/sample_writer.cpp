// SPDX-License-Identifier: MIT
#include "recording/sigprof/sample_writer.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/sigprof/sampling.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kNameNs = 250'000'000, kYoungNs = 1'000'000'000;

}  // namespace

void SampleWriter::open(const Options& options, ThreadTable& threads, Sink& sink) noexcept {
  options_ = options;
  threads_ = &threads;
  pid_ = own_pid();
  buffer_.begin_in(room_, sink);
}

/// Returns the time for new events that precede the samples of this pass.  Samples have the time of
/// the kernel's last tick.
When SampleWriter::since_last_pass(std::uint32_t tid) const noexcept {
  return {pid_, tid, previous_pass_ns_};
}

/// The end of a round promises that no later record is older than the round before.  A handler that
/// reads its clock and is then interrupted could break that, so the round goes on.
std::uint64_t SampleWriter::begin_pass() noexcept {
  if (is_complete_)
    buffer_.begin_round();
  is_complete_ = are_handlers_idle();
  previous_pass_ns_ = pass_tick_ns_;
  pass_tick_ns_ = last_tick_ns();
  pass_ns_ = monotonic_ns();
  return pass_ns_;
}

void SampleWriter::write_pass() noexcept {
  mappings_.follow(previous_pass_ns_, buffer_, pid_, threads_->lock());
  const std::uint32_t used = threads_->used();
  for (std::uint32_t number = 0; number < used; ++number)
    drain(number);
  buffer_.flush();
}

void SampleWriter::drain(std::uint32_t number) noexcept {
  Slot& slot = threads_->slot(number);
  // Read the state before head: nothing is written after the end.
  const std::uint32_t state = load_published(slot.shared.state);
  if (state == kFree)
    return;
  if (!slot.is_announced)
    write_new_thread(slot);
  const std::uint64_t head = load_published(slot.shared.head);
  const std::uint64_t used = head - slot.shared.tail;
  if (used != 0 && used <= options_.ring_bytes) {
    write_name_of(slot);
    threads_->copy_ring(slot, head, ring_.data());
    publish(slot.shared.tail, head);
    write_samples(used);
  }
  if (state != kEnded)
    return;
  write_task(buffer_, PERF_RECORD_EXIT, {pid_, slot.shared.tid, last_tick_ns()});
  threads_->release(number);
}

void SampleWriter::write_new_thread(Slot& slot) noexcept {
  slot.is_announced = true;
  slot.name = {};
  if (previous_pass_ns_ != 0)
    write_task(buffer_, PERF_RECORD_FORK, since_last_pass(slot.shared.tid));
  write_name_of(slot);
}

/// Names change, mostly when a thread has just started.
void SampleWriter::write_name_of(Slot& slot) noexcept {
  const bool is_young = slot.shared.start_ns + kYoungNs > pass_ns_;
  if (slot.named_ns != 0 && !is_young && pass_ns_ - slot.named_ns < kNameNs)
    return;
  slot.named_ns = pass_ns_;
  std::array<char, 16> room{};
  std::string_view name = read_of_thread(static_cast<pid_t>(slot.shared.tid), "comm", room);
  name = name.substr(0, name.find('\n'));
  if (name.empty() || name == std::string_view(slot.name.data()))
    return;
  slot.name = {};
  std::copy_n(name.begin(), std::min(name.size(), slot.name.size() - 1), slot.name.begin());
  write_name(buffer_, since_last_pass(slot.shared.tid), name);
}

void SampleWriter::write_samples(std::size_t bytes) noexcept {
  ByteReader reader(Bytes(ring_).first(bytes));
  while (const auto record = stream::take_record(reader)) {
    const auto head = ByteReader(record->bytes).take<SampleHead>();
    if (!head)
      return;
    mappings_.follow_to(head->ip, buffer_, pid_, threads_->lock());
    write_sample(buffer_, *record);
    buffer_.count_sample(head->period_ns / options_.period_ns());
  }
}

void SampleWriter::count_blocking() noexcept {
  for (std::uint32_t number = 0; number < threads_->used(); ++number) {
    const Slot& slot = threads_->slot(number);
    const Thread& thread = slot.shared;
    if (load_published(thread.state) != kLive ||
        load_relaxed(thread.samples) + load_relaxed(thread.lost_samples) != slot.taken_before)
      continue;
    std::array<char, 4096> room;
    blocking_ +=
        reports_blocked_sigprof(read_of_thread(static_cast<pid_t>(thread.tid), "status", room)) ? 1
                                                                                                : 0;
  }
}

void SampleWriter::finish() noexcept {
  count_blocking();
  std::uint64_t lost = 0;
  for (std::uint32_t number = 0; number < threads_->used(); ++number)
    lost += load_relaxed(threads_->slot(number).shared.lost_samples);
  if (lost != 0)
    write_lost(buffer_, lost);
  write_end(buffer_);
  buffer_.flush();
}

}  // namespace pe::inprocess
