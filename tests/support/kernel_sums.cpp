// Runs off_cpu and lets the kernel sum up its time off the CPU.  Prints the program's own
// measurements and the kernel's sums side by side.
//
// Usage: kernel_sums [--no-reuse|--check-reuse|--kernel-stacks|--no-room|--max-sums=N|--no-tables|
//                     --min-us=N|--renew] COMMAND...
// --no-tables: the kernel knows no mappings, and has no room to forward stacks that it cannot walk.
// --renew: the kernel's tables are renewed again and again.
// Writes lines:
//
//     thread TID WALL_NS CPU_NS SWITCHES   as the program measured
//     sums TID NS SWITCHES                 as the kernel summed up, for the same code
//     renewed N                            how often the kernel's tables were renewed
//     incomplete N                         of these switches, those whose stack is incomplete
//     in_kernel N                          of these switches, those with a stack of the kernel
//     outstanding N NS                     threads off their CPUs at the end, and for how long
//     missed N NS                          switches back to a CPU that the kernel's program did not
//                                          see, and the longest time that these can have lasted
//     sums_full N NS                       switches without room for their sum, and their time
//     ring_full N                          switches that could not be forwarded
//     kernel_reused, kernel_unwound        of the whole run: stacks in the kernel
//     reused, wrong_reuse, lost, walked    of the whole run: stacks in user space
//
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/parse_number.h"
#include "recording/bpf/bpf_object.h"
#include "recording/refused.h"
#include "recording/waits/ordered_waits.h"
#include "support/handshake.h"
#include "support/live_tables.h"

namespace {

using namespace pe;

struct Total {
  std::uint64_t ns = 0, switches = 0;
};

bool leads_through(const std::vector<std::uint64_t>& frames, std::uint64_t start,
                   std::uint64_t end) {
  for (const std::uint64_t frame : frames) {
    const std::uint64_t avma = frame & 0x1fff'ffff'ffff'ffff;
    if (avma > start && avma <= end)
      return true;
  }
  return false;
}

/// The growth of a sum, with the stack that its number meant at that time.
struct Growth {
  std::uint32_t tid;
  Total total;
  std::vector<std::uint64_t> frames;
  unwind::StackStop stop;
  bool has_kernel_stack;
};

/// Reads the sums of a process, as far as they have grown.
class SumReader {
 public:
  SumReader(unwind::BpfObject& object, std::uint32_t pid) : object_(object), pid_(pid) {}

  void read() {
    for (const auto& [key, sum] : increases_.take(object_.read_sums(), [] {})) {
      if (key.tgid != pid_)
        continue;
      const auto stack = object_.stack(key.user_stack);
      const auto in_kernel = object_.stack(key.kernel_stack);
      all_.push_back({key.tid,
                      {sum.ns, sum.count},
                      {stack.frames.begin(), stack.frames.end()},
                      stack.stop,
                      in_kernel.is_kernel && in_kernel.frames.size() > 1});
    }
  }
  [[nodiscard]] const std::vector<Growth>& all() const { return all_; }

 private:
  unwind::BpfObject& object_;
  std::uint32_t pid_;
  waits::SumIncreases increases_;
  std::vector<Growth> all_;
};

void print_sums(unwind::BpfObject& object, const std::vector<Growth>& all, const std::string& text,
                std::uint32_t pid) {
  unsigned long long start = 0, end = 0;
  std::sscanf(text.c_str(), "code %llx %llx", &start, &end);
  std::map<std::uint32_t, Total> totals;
  std::uint64_t incomplete = 0, with_kernel_stack = 0;
  for (const Growth& growth : all) {
    const bool is_whole = growth.stop == unwind::kStopEndOfStack && !growth.frames.empty();
    if (is_whole && !leads_through(growth.frames, start, end))
      continue;
    totals[growth.tid].ns += growth.total.ns;
    totals[growth.tid].switches += growth.total.switches;
    with_kernel_stack += growth.has_kernel_stack ? growth.total.switches : 0;
    if (is_whole)
      continue;
    incomplete += growth.total.switches;
    fmt::print("# {} times, end {}:", growth.total.switches, static_cast<int>(growth.stop));
    for (const std::uint64_t frame : growth.frames)
      fmt::print(" {:x}", frame);
    fmt::print("\n");
  }
  for (const auto& [tid, total] : totals)
    fmt::print("sums {} {} {}\n", tid, total.ns, total.switches);
  fmt::print("incomplete {}\nin_kernel {}\n", incomplete, with_kernel_stack);
  const std::uint64_t now = testing::now_ns();
  std::uint64_t outstanding = 0, ns = 0;
  for (const auto& thread : object.take_outstanding())
    if (thread.key.tgid == pid) {
      ++outstanding;
      ns += now - thread.since_ns;
    }
  fmt::print("outstanding {} {}\n", outstanding, ns);
}

void print_counts(const unwind::Counts& counts) {
  fmt::print("sums_full {} {}\nring_full {}\n", counts.sums_full, counts.sums_full_ns,
             counts.ring_full);
  fmt::print("kernel_reused {}\nkernel_unwound {}\n", counts.kernel_reused, counts.kernel_unwound);
  fmt::print("reused {}\nwrong_reuse {}\nlost {}\nmissed {} {}\nwalked {}\n", counts.reused,
             counts.wrong_reuse, counts.sums_full + counts.stacks_full + counts.no_storage,
             counts.missed, counts.missed_ns, counts.stacks - counts.reused);
}

void run(const unwind::LoadOptions& options, bool renews, const std::vector<std::string>& command) {
  const auto object = unwind::load(options);
  testing::HandshakenChild child(command);
  const auto pid = static_cast<std::uint32_t>(child.pid());
  if (!object->add_target(pid, unwind::kTargetStarted))
    throw Error("no room for a target");
  testing::LiveTables live(child.pid(), *object);
  child.start();
  if (options.pass_on == unwind::kPassNothing)
    live.update();
  object->attach_to_switches();
  SumReader sums(*object, pid);
  const auto renew = [&] {
    sums.read();
    object->renew();
  };
  const std::string text =
      child.work(renews ? std::function<void()>(renew) : std::function<void()>());
  sums.read();
  fmt::print("{}renewed {}\n", text, object->memory().renewals);
  print_sums(*object, sums.all(), text, pid);
  object->detach();
  print_counts(object->counts());
  if (const int status = child.finish(); status != 0)
    throw Error(fmt::format("the command's status is {}", status));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    unwind::LoadOptions options{.program = unwind::Program::kOnSwitch, .only_targets = true};
    bool renews = false;
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; ++first) {
      const std::string_view option = argv[first];
      constexpr std::string_view kMinimum = "--min-us=", kMostSums = "--max-sums=";
      options.with_reuse = options.with_reuse && option != "--no-reuse";
      options.check_reuse = options.check_reuse || option == "--check-reuse";
      options.with_kernel_stacks = options.with_kernel_stacks || option == "--kernel-stacks";
      renews = renews || option == "--renew";
      if (option == "--no-room")
        options.stack_bytes = sizeof(unwind::StackBlock);
      if (option.starts_with(kMostSums))
        options.max_sums = parse_number<std::uint32_t>(option.substr(kMostSums.size())).value_or(1);
      if (option == "--no-tables") {
        options.pass_on = unwind::kPassUnfinished;
        options.ring_bytes = 4096;  // less than one copy of a stack
      }
      if (option.starts_with(kMinimum))
        options.min_ns =
            1000 * parse_number<std::uint32_t>(option.substr(kMinimum.size())).value_or(0);
    }
    run(options, renews, {argv + first, argv + argc});
  } catch (const recording::Refused& error) {
    fmt::print("skipped: {}\n", error.what());
    return 77;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_sums: {}\n", error.what());
    return 1;
  }
  return 0;
}
