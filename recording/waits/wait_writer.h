// Writes waits to the sample stream: one sample each, whose period is its length in nanoseconds.
//
// Threads that hand work to each other wait hundreds of thousands of times a second, in few places.
// The waits of a thread in one place within 10 ms are one sample, so that later tools keep up.  Its
// time is the end of these 10 ms, or earlier if something changes on which symbols depend.  With
// marks of calls, each wait is a sample of its own, because it is inside a call or not.
//
// If the waker is known, a sample of another event is right before the wait's.  It has the same
// time and period, and the waker's ids and stack (pe-stream(5)).  The waker's own waker precedes
// it, as a sample of a third event. Waits for locks have the lock's address.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "recording/waits/wait_tracker.h"
#include "stream/proc/kallsyms.h"
#include "stream/stream_writer.h"

namespace pe::waits {

/// Returns the layout of samples and trailers that WaitWriter writes; `recorded` is the layout of
/// its event.  `with_locks`: they have the address of a lock.  `with_weights`: see
/// stream::WaitKind.
perf_event_attr wait_attr(const perf_event_attr& recorded, bool with_locks = false,
                          bool with_weights = false);

/// The ids of samples of CPU time, and of times in which no thread ran: numbers that no counter
/// has, because the kernel assigns ids from 1 on.
inline constexpr std::uint64_t kCpuId = (std::uint64_t{1} << 62U) + 2, kSilenceId = kCpuId + 1;
/// Declares these two events; the second only `with_silence`.
void write_times(stream::StreamWriter& writer, const perf_event_attr& attr, bool with_silence);

class WaitWriter {
 public:
  /// `writer` must outlive this; `id` is the event's, `waker_id` that of wakers, and the next
  /// number that of the wakers of wakers.
  WaitWriter(stream::StreamWriter& writer, std::uint64_t id, std::uint64_t waker_id = 0,
             bool with_locks = false, bool with_weights = false)
      : writer_(writer),
        id_(id),
        waker_id_(waker_id),
        with_locks_(with_locks),
        with_weights_(with_weights) {}

  /// From now on each wait is a sample of its own, at the end of the wait.
  void keep_apart() noexcept { keeps_apart_ = true; }
  void add(const Wait& wait);
  /// Writes a sample of CPU time, whose length is its period.
  void write_sample(const Wait& sample);
  /// Time has reached `now_ns`: writes the waits if their 10 ms are over.
  void reach(std::uint64_t now_ns);
  /// Writes all waits.
  void flush(std::uint64_t now_ns);
  /// The processes that have stacks in the stream: of waits, and of wakers.
  [[nodiscard]] const std::unordered_set<std::uint32_t>& processes() const noexcept {
    return processes_;
  }

 private:
  /// A thread, and where it was.
  struct Place {
    std::uint32_t pid, tid, cpu;
    std::uint16_t misc;
    std::uint64_t ip;
    std::size_t chain_begin, chain_size;  ///< in chains_
  };
  struct Waits {
    Place place;
    std::uint64_t total_ns;
    std::uint64_t lock, weight, event;
    std::vector<Place> wakers;
  };

  Place keep(std::uint32_t pid, std::uint32_t tid, const Stack& stack, std::uint16_t misc);
  [[nodiscard]] std::span<const std::uint64_t> chain_of(const Place& place) const {
    return std::span(chains_).subspan(place.chain_begin, place.chain_size);
  }
  [[nodiscard]] bool is_same(const Waits& waits, const Wait& wait, std::uint16_t misc) const;
  /// The other fields of a record.
  struct Rest {
    std::uint64_t lock, total_ns, weight;
    std::span<const std::uint64_t> chain;
  };
  void write(std::uint64_t id, const Place& place, const Rest& rest, std::uint64_t time_ns);

  stream::StreamWriter& writer_;
  std::uint64_t id_, waker_id_;
  bool with_locks_, with_weights_;
  bool keeps_apart_ = false;
  stream::RecordBuilder builder_;
  std::unordered_set<std::uint32_t> processes_;
  std::uint64_t until_ns_ = 0;  ///< the end of the 10 ms; 0: nothing is held
  std::vector<Waits> held_;     ///< in the order in which they came
  std::vector<std::uint64_t> chains_;
  boost::unordered_flat_map<std::uint64_t, std::size_t> index_by_hash_;  ///< into held_
};

// Makes call chains, as in samples, of the stacks that the kernel's programs found.

class ChainWriter {
 public:
  /// Reads the kernel's symbols, which takes 70 ms; otherwise the first stack does.
  void load();
  /// Appends the kernel's mark and its frames from schedule() on, without those that entered
  /// tracing.
  void add_kernel_part(const unwind::StackOfKernel& stack, std::vector<std::uint64_t>& chain);
  /// Does the same for a waker, from the function that wakes a thread on.  If that is an interrupt,
  /// appends only its own frames.  Returns whether it is one.
  bool add_waking_kernel_part(const unwind::StackOfKernel& stack,
                              std::vector<std::uint64_t>& chain);
  /// Appends the program's frames.
  static void add_user_part(const unwind::StackOfKernel& stack, std::vector<std::uint64_t>& chain);

 private:
  /// Functions of the kernel that matter here.
  enum class Role : std::uint8_t { kOther, kSwitches, kWakes, kEntersInterrupt };

  [[nodiscard]] std::size_t frames_of_tracing(std::span<const std::uint64_t> frames, Role below);
  [[nodiscard]] Role role_of(std::uint64_t avma);

  bool is_loaded_ = false;
  std::optional<stream::Kallsyms> symbols_;
  std::unordered_map<std::uint64_t, Role> roles_;  ///< by return address
};

}  // namespace pe::waits
