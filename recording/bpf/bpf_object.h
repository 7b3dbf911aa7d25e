// The kernel's unwinder as an object: it loads the eBPF programs, attaches them, and reads their
// results.
//
// It needs Linux 6.1 (bpf_loop, task storage, maps that grow in any context), BTF, and root or
// CAP_BPF and CAP_PERFMON.  It also needs the first pid namespace, because the kernel's programs
// see its ids.
//
// Every limit is counted, see Counts.  Costs: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recording/bpf/hit_weight.h"
#include "recording/bpf/records.h"
#include "recording/bpf/table_store.h"
#include "recording/bpf/target_filter.h"
#include "recording/bpf/target_start.h"

namespace pe::unwind {

enum class Program : std::uint8_t {
  kOnSample,  ///< runs on a counter's samples
  kOnSwitch,  ///< runs on task switches: sums the time off the CPU
};

struct LoadOptions {
  Program program = Program::kOnSample;
  bool with_kernel_stacks = false;   ///< of switches: 1.2 us more for each one that is not reused
  bool with_kernel_threads = false;  ///< counts their switches; they have no user stack
  bool with_user_stacks = true;      ///< of switches, and of wakers
  bool with_scripts = false;         ///< ... with the frames that they have in an interpreter
  /// Of switches: the thread that ended each wait, the one that ended a wait of that thread
  /// meanwhile, and so on: up to kMaxWakers.  With locks, 1 means only who released them.
  std::uint32_t max_wakers = 0;
  bool with_locks = false;        ///< notes the futex that a thread waits for
  bool only_locks = false;        ///< ... and counts only these waits
  bool with_held = false;         ///< ... and, in place of the waits, times of holding (kStateHeld)
  bool only_targets = false;      ///< records only add_target()'s processes, and those they fork
  PassOn pass_on = kPassNothing;  ///< which samples, and switches, come with a copy
  bool each_apart = false;        ///< of switches: each wait comes by itself (kRecordWaitEnded)
  bool with_reuse = true;         ///< reuses each thread's last stacks
  bool check_reuse = false;       ///< walks anew even so, and counts differences
  bool with_probes = false;       ///< of samples: also those of CounterKind::kProbe
  /// Of switches: divides waits by WaitKind, and adds up the time in which no target's thread runs
  /// (Sum::silent_ns).  Samples have the number of threads that run.
  bool with_times = false;
  bool with_samples = false;  ///< of switches: also kOnSample, whose samples are whole
  /// Samples may take this part of each CPU; further ones come as kRecordThinned.  0: no limit.
  std::uint32_t budget_percent = 0;
  std::uint64_t min_ns = 0, max_ns = ~std::uint64_t{0};  ///< of switches: counted times
  /// Bit 0: preempted; other bits: TASK_... of include/linux/sched.h shifted left by one.
  std::uint32_t states = ~std::uint32_t{0};
  /// Room for different stacks, half of which is in use at a time: see BpfObject::renew().  With
  /// kOnSample it may be 0: each sample then comes with its own.
  std::size_t stack_bytes = std::size_t{32} << 20;
  std::size_t ring_bytes = std::size_t{8} << 20;  ///< a power of two
  std::size_t wakeup_bytes = 0;             ///< bytes in the ring that wake its reader; 0: any
  std::uint32_t max_sums = (1U << 16) - 1;  ///< that have room at a time
};

/// A sum with its number, and its place in an array.  After a renewal its place
/// gets another number.  A number gets another sum only after weeks.
struct NumberedSum {
  std::uint32_t number, place;
  KeyedSum keyed;
};

/// One of the different stacks.
struct StackOfKernel {
  std::span<const std::uint64_t> frames;  ///< the innermost first; see records.h
  StackStop stop = kStopEndOfStack;
  bool is_kernel = false;
  std::span<const std::uint64_t> script = {};  ///< two words for each frame in an interpreter
  bool is_script_cut = false;                  ///< its outer frames are missing
};

/// A record of the ring.  All views become invalid when the callback returns.
struct Sample {
  const SampleRecord& record;
  StackOfKernel stack;  ///< the user's, wherever it was stored; no frames if there is none
  StackOfKernel kernel_stack = {};  ///< the kernel's, likewise
  /// For kRecordPassedOn and kRecordPassedWaker: the registers by DWARF number, and the memory from
  /// the stack pointer on.
  std::span<const std::uint64_t> registers = {};
  std::span<const std::byte> memory = {};
  /// For kRecordScript: its words.
  std::span<const std::uint64_t> script = {};
  const EndedWait* ended = nullptr;  ///< for kRecordWaitEnded
  /// For kRecordCommandLine: the new name of the process, and its command line.
  std::string_view name = {}, words = {};
};

/// The thread that ended a wait, or that the real waker interrupted.
struct Waker {
  std::uint32_t tgid = 0, tid = 0;  ///< 0: the idle task; see EndOfWait
  std::uint32_t user_stack = 0, kernel_stack = 0;
};

/// Walks that ended at a limit: bpf/limits.bpf.h.
struct LimitedWalks {
  std::array<std::uint64_t, kWalkLimits> ended_by{};  ///< by WalkLimit
  std::uint64_t longest_ns = 0;                       ///< of all walks; 0: none took 0.1 ms
  /// The process that had most of them.
  std::uint32_t process = 0;
  std::string process_name;
};

/// The memory that the programs use in the kernel.
struct KernelMemory {
  std::uint64_t map_bytes = 0;     ///< as bpftool-map(8) reports it
  std::uint64_t threads = 0;       ///< those with a state of their own, at take_outstanding()
  std::uint64_t thread_bytes = 0;  ///< of these, which no tool reports
  std::uint64_t renewals = 0;      ///< how often renew() was called
};

/// The functions are virtual so that a build without libbpf links without them.
class BpfObject : public TableStore {
 public:
  /// `counter` was opened by stream::open_counter().  Counters that inherit it also inherit the
  /// program.  The counter then writes no samples to its own ring, only other records.  Whether it
  /// counts is not changed.  Throws Error.  `cookie` is not 0, and comes with each record.
  /// One counter of a probe is enough for all CPUs and all processes, but nothing inherits it.
  virtual void attach_to_counter(int counter, std::uint64_t cookie,
                                 CounterKind kind = CounterKind::kSampling) = 0;
  /// Sets what the period of a probe's records is; otherwise it is 1.  Throws Error.
  virtual void set_weight(std::uint64_t cookie, const HitWeight& weight) = 0;
  /// Sets whether samples are ignored.  Initially they are not.
  virtual void pause(bool is_paused) = 0;
  /// Starts counting switches; no thread of the targets is known to run.  Returns when it has
  /// started (CLOCK_MONOTONIC ns).  Throws Error.
  virtual std::uint64_t attach_to_switches() = 0;
  /// To be called once, after attach_to_switches().  Returns the threads that have waited since
  /// before that: from now on their waits are counted, from its start on.  Throws Error.
  virtual std::vector<EarlierWait> take_earlier_waits() = 0;
  /// Undoes all calls of attach_...().
  virtual void detach() = 0;

  /// Returns false if there are too many targets.
  virtual bool add_target(std::uint32_t tgid, TargetStart start) = 0;

  /// From now on samples of the process come with the stacks of its interpreter.  Returns false if
  /// there are too many such processes.
  virtual bool set_script(std::uint32_t tgid, const ProcessScript& script) = 0;
  /// Does nothing if the process is not known.
  virtual void forget_script(std::uint32_t tgid) = 0;
  /// From now on samples of all processes that run this program come with those stacks.  Returns
  /// false if there are too many such programs.
  virtual bool add_script_file(const ScriptFileKey& key, const ScriptFile& file) = 0;

  /// The descriptor to poll(2) for samples.
  [[nodiscard]] virtual int ring_fd() const = 0;
  /// Calls `on_sample` for all samples in the ring, but for no more than the ring holds at once:
  /// more may arrive all the time.  Returns their number.
  virtual std::size_t read_samples(const std::function<void(const Sample&)>& on_sample) = 0;

  /// Returns the sums since attaching, of switches that have ended; after renew(), the older ones
  /// for the last time.  While switches continue, sums that are added during the call may be
  /// missing.
  virtual std::vector<NumberedSum> read_sums() = 0;
  /// Whether renew() should be called.
  [[nodiscard]] virtual bool is_nearly_full() const = 0;
  /// Makes room for other stacks and sums.  To be called after read_sums().  The numbers in use
  /// stay valid: those of waits that have not ended until they have, others until the next call.
  /// Throws Error.
  virtual void renew() = 0;
  /// Returns the threads that are off their CPUs now, and whose leaving was counted.  The ends of
  /// these waits will not be counted.  Call it before detach(): a thread that ends takes its wait
  /// with it.  Throws Error.
  virtual std::vector<Outstanding> take_outstanding() = 0;
  /// Returns since when no thread of the targets has run (CLOCK_MONOTONIC ns); 0: one runs.  The
  /// end of that time will not be counted.
  virtual std::uint64_t take_silence() = 0;
  /// Returns a stack by its number; empty for 0, and for a number that is not a stack's.  The
  /// frames live as long as the number is valid.
  [[nodiscard]] virtual StackOfKernel stack(std::uint32_t number) const = 0;
  /// Returns wakers by their number, see LoadOptions::max_wakers; none for 0, and for a number that
  /// is not of wakers.
  [[nodiscard]] virtual std::vector<Waker> wakers(std::uint32_t number) const = 0;
  /// Returns the sums of the counts of all CPUs.
  [[nodiscard]] virtual Counts counts() const = 0;
  [[nodiscard]] virtual LimitedWalks limited_walks() const = 0;
  [[nodiscard]] virtual KernelMemory memory() const = 0;
};

/// Throws recording::Refused (built without eBPF, no BTF, not permitted, another pid namespace), or
/// Error with the message of the kernel's verifier.
std::unique_ptr<BpfObject> load(const LoadOptions& options);

}  // namespace pe::unwind
