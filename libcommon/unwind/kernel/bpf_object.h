// The kernel's unwinder as an object: loads its programs, attaches them, reads what they found.
//
// Needs Linux 6.1 (bpf_loop, task storage, maps that grow in any context), BTF, root or CAP_BPF and
// CAP_PERFMON, and the first pid namespace, whose ids the kernel's programs see.
//
// Every limit is counted, see Counts.  Costs: tests/bench/figures.md.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "unwind/kernel/records.h"
#include "unwind/kernel/table_store.h"
#include "unwind/kernel/target_start.h"

namespace pe::unwind {

/// The machine does not let us: another engine is to be used.  What it says is why.
class Unavailable : public Error {
  using Error::Error;
};

enum class Program : std::uint8_t {
  kOnSample,  ///< on a counter's samples
  kOnSwitch,  ///< on switches of tasks: sums of the time off the CPU
};

struct LoadOptions {
  Program program = Program::kOnSample;
  bool with_kernel_stacks = false;   ///< of switches, where not reused, 1.2 us more
  bool with_kernel_threads = false;  ///< switches of them: they have no user stack
  bool with_user_stacks = true;      ///< of switches, and wakers
  bool with_wakers = false;          ///< of switches: who ended each wait
  bool only_targets = false;         ///< only add_target()'s processes, and those they fork
  PassOn pass_on = kPassNothing;     ///< samples, and switches, that come with a copy
  bool with_reuse = true;            ///< of each thread's last stacks
  bool check_reuse = false;          ///< walks anew nevertheless, and counts what differs
  std::uint64_t min_ns = 0, max_ns = ~std::uint64_t{0};  ///< of switches: times that are counted
  /// Bit 0: preempted; otherwise TASK_... of include/linux/sched.h shifted left by one.
  std::uint32_t states = ~std::uint32_t{0};
  /// For all different stacks; 0: with samples, each comes with its own.
  std::size_t stack_bytes = std::size_t{64} << 20;
  std::size_t ring_bytes = std::size_t{8} << 20;  ///< a power of two
  std::size_t wakeup_bytes = 0;                   ///< in the ring, that wake its reader; 0: any
  std::uint32_t max_sums = 1U << 18;
};

/// One of the different stacks.
struct StackOfKernel {
  std::span<const std::uint64_t> frames;  ///< the innermost first; see records.h
  StackStop stop = kStopEndOfStack;
  bool is_kernel = false;
};

/// A record of the ring.  All views die when the call returns.
struct Sample {
  const SampleRecord& record;
  StackOfKernel stack;              ///< the user's, wherever it stood; no frames if there is none
  StackOfKernel kernel_stack = {};  ///< likewise
  /// Of kRecordPassedOn: by DWARF number, and the memory from the stack pointer on.
  std::span<const std::uint64_t> registers = {};
  std::span<const std::byte> memory = {};
};

/// Who ended a wait, or was interrupted by that.
struct Waker {
  std::uint32_t tgid = 0, tid = 0;  ///< 0: the idle task
  std::uint32_t user_stack = 0, kernel_stack = 0;
};

class BpfObject : public TableStore {
 public:
  /// A counter opened by stream::open_counter(); what inherits it inherits the program.  It then
  /// writes no samples to its own ring, only other records.  Whether it counts is not changed.
  /// Throws Error.  `cookie`, not 0, comes with each record.
  virtual void attach_to_counter(int counter, std::uint64_t cookie) = 0;
  /// Whether samples are ignored; at first they are not.
  virtual void pause(bool is_paused) = 0;
  /// From now on switches are counted.  Throws Error.
  virtual void attach_to_switches() = 0;
  /// Ends all that attach_...() began.
  virtual void detach() = 0;

  /// False if there are too many.
  virtual bool add_target(std::uint32_t tgid, TargetStart start) = 0;

  /// To poll(2) for samples.
  [[nodiscard]] virtual int ring_fd() const = 0;
  /// Calls `on_sample` for all that have come, but no more than the ring holds at once: more may be
  /// coming all the time.  Returns how many.
  virtual std::size_t read_samples(const std::function<void(const Sample&)>& on_sample) = 0;

  struct KeyedSum {
    SumKey key;
    Sum sum;
  };
  /// Since attaching: of switches that have ended.  While switches go on, sums that are new
  /// meanwhile may be missing.  Throws Error.
  virtual std::vector<KeyedSum> read_sums() = 0;
  /// The threads that are off their CPUs now and were counted leaving.  Throws Error.
  virtual std::vector<Outstanding> read_outstanding() = 0;
  /// A stack by its number; empty for 0, and for what is no stack's number.  The frames live as
  /// long as this object.
  [[nodiscard]] virtual StackOfKernel stack(std::uint32_t number) const = 0;
  /// A waker by its number; nullopt for 0, and for what is no waker's number.
  [[nodiscard]] virtual std::optional<Waker> waker(std::uint32_t number) const = 0;
  /// All CPUs' together.
  [[nodiscard]] virtual Counts counts() const = 0;
};

/// Throws Unavailable (built without eBPF, no BTF, not permitted, another pid namespace), or Error
/// with what the kernel's verifier said.
std::unique_ptr<BpfObject> load(const LoadOptions& options);

}  // namespace pe::unwind
