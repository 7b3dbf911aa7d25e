// The library's own thread: reads the samples from the rings, and writes them.
// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "inprocess/atomics.h"
#include "inprocess/runtime/proc_self.h"
#include "inprocess/runtime/tick.h"
#include "inprocess/runtime/timers.h"
#include "inprocess/sigprof/handler.h"
#include "inprocess/sigprof/run.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kScanNs = 100'000'000, kScanShare = 50;
constexpr std::uint64_t kLongestWaitNs = 100'000'000;
constexpr std::uint64_t kNameNs = 250'000'000, kYoungNs = 1'000'000'000;

}  // namespace

void* Run::run_writer(void* run) noexcept {
  ::prctl(PR_SET_NAME, "sp-sigprof");
  static_cast<Run*>(run)->write_stream();
  return nullptr;
}

void Run::write_stream() noexcept {
  publish(writer_tid_, static_cast<std::uint32_t>(own_tid()));
  write_head(buffer_, options_);
  for (;;) {
    const bool is_last = load_published(is_stopping_) != 0;
    pass();
    if (is_last || sink_.state() != Sink::State::kOpen)
      break;
    wait();
  }
  if (sink_.state() == Sink::State::kOpen)
    finish();
  else
    threads_.close();  // samples would be lost
  writer_cpu_ns_ = own_cpu_ns();
}

/// Waits until the run stops, or until rings would be three quarters full if every stack had the
/// maximum depth.
void Run::wait() noexcept {
  const bool is_cpu = options_.clock == Clock::kCpu;  // the kernel checks it at each tick
  const std::uint64_t shortest_ns = is_cpu ? std::max(period_ns_, tick_ns()) : period_ns_;
  const std::uint64_t records = options_.ring_bytes / record_bytes(options_.stack_bytes);
  const std::uint64_t ns = std::min(kLongestWaitNs, records * shortest_ns / 4 * 3);
  const timespec time{0, static_cast<long>(ns)};
  ::syscall(SYS_futex, &is_stopping_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
}

/// Returns the time for new events that precede the samples of this pass.  Samples have the time of
/// the kernel's last tick.
When Run::since_last_pass(std::uint32_t tid) const noexcept {
  return {pid_, tid, previous_pass_ns_};
}

void Run::pass() noexcept {
  previous_pass_ns_ = pass_tick_ns_;
  pass_tick_ns_ = last_tick_ns();
  pass_ns_ = monotonic_ns();
  buffer_.begin_round();
  look_at_threads();
  mappings_.follow(buffer_, pid_, threads_.lock());
  const std::uint32_t used = threads_.used();
  for (std::uint32_t number = 0; number < used; ++number)
    drain(number);
  buffer_.flush();
}

void Run::look_at_threads() noexcept {
  if (pass_ns_ < next_scan_ns_ || load_published(is_stopping_) != 0)
    return;
  // Keep this order: has_ended_sampling_ is set before our own remove_handler() is called.
  if (!is_handler_installed() && load_published(has_ended_sampling_) == 0) {
    store_relaxed(is_taken_over_, 1U);
    threads_.close();
  }
  threads_.scan(static_cast<pid_t>(writer_tid_), !options_.only_chosen_threads);
  const std::uint64_t took_ns = monotonic_ns() - pass_ns_;
  next_scan_ns_ = pass_ns_ + std::max(kScanNs, took_ns * kScanShare);
}

void Run::drain(std::uint32_t number) noexcept {
  Slot& slot = threads_.slot(number);
  // Read the state before head: nothing is written after the end.
  const std::uint32_t state = load_published(slot.shared.state);
  if (state == kFree)
    return;
  if (!slot.is_told)
    tell(slot);
  const std::uint64_t head = load_published(slot.shared.head);
  const std::uint64_t used = head - slot.shared.tail;
  if (used != 0 && used <= options_.ring_bytes) {
    name(slot);
    threads_.copy_ring(slot, head, ring_.data());
    publish(slot.shared.tail, head);
    take_records(used);
  }
  if (state != kEnded)
    return;
  write_task(buffer_, PERF_RECORD_EXIT, {pid_, slot.shared.tid, pass_ns_});
  threads_.give_back(number);
}

void Run::tell(Slot& slot) noexcept {
  slot.is_told = true;
  slot.name = {};
  if (previous_pass_ns_ != 0)
    write_task(buffer_, PERF_RECORD_FORK, since_last_pass(slot.shared.tid));
  name(slot);
}

/// Names change, mostly when a thread has just started.
void Run::name(Slot& slot) noexcept {
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

void Run::take_records(std::size_t bytes) noexcept {
  ByteReader reader(Bytes(ring_).first(bytes));
  while (const auto sample = take_record(reader)) {
    mappings_.follow_to(sample->header.registers[kIpRegister], buffer_, pid_, threads_.lock());
    write_sample(buffer_, pid_, *sample, period_ns_);
    buffer_.count_sample(sample->header.weight);
  }
}

void Run::count_blocking() noexcept {
  for (std::uint32_t number = 0; number < threads_.used(); ++number) {
    const Slot& slot = threads_.slot(number);
    const Thread& thread = slot.shared;
    if (load_published(thread.state) != kLive ||
        load_relaxed(thread.samples) + load_relaxed(thread.lost_samples) != slot.taken_before)
      continue;
    std::array<char, 4096> room;
    blocking_ +=
        says_that_sigprof_is_blocked(read_of_thread(static_cast<pid_t>(thread.tid), "status", room))
            ? 1
            : 0;
  }
}

void Run::finish() noexcept {
  count_blocking();
  std::uint64_t lost = 0;
  for (std::uint32_t number = 0; number < threads_.used(); ++number)
    lost += load_relaxed(threads_.slot(number).shared.lost_samples);
  if (lost != 0)
    write_lost(buffer_, lost);
  write_end(buffer_);
  buffer_.flush();
}

}  // namespace pe::inprocess
