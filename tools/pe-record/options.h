// pe-record's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run.h"

namespace pe::record {

/// How call chains are found.
enum class CallGraph {
  kAuto,           ///< kDwarf where the kernel gives registers and stacks, else kFramePointers
  kDwarf,          ///< from copies of the stack, by call frame information
  kFramePointers,  ///< by the kernel
  kNone,
};

/// The most of a stack that the kernel can be asked for: the size of a record has 16 bits.
inline constexpr std::uint32_t kMaxStackBytes = 65'528;

struct Options {
  std::vector<pid_t> pids;  ///< whole processes
  std::vector<pid_t> tids;  ///< single threads
  bool all_processes = false;
  bool records_command = false;  ///< `command` is the target
  std::vector<int> cpus;         ///< empty: all that are online
  std::string cgroup;            ///< a path, absolute or below the cgroup file system; empty: none
  std::vector<std::string> command;  ///< recorded while it runs

  std::vector<std::string> events;  ///< empty: cycles, or cpu-clock where there is no PMU
  std::uint64_t frequency_hz = 99;
  bool frequency_was_given = false;
  std::optional<std::uint64_t> period;       ///< instead of a frequency
  std::optional<std::uint64_t> duration_ns;  ///< nullopt: until the target ends or Ctrl-C
  CallGraph call_graph = CallGraph::kAuto;
  std::optional<std::uint32_t> stack_bytes;  ///< of each copy; nullopt: as the rings allow
  bool may_continue = true;                  ///< stacks that are deeper than their copy
  bool keep_stacks = false;                  ///< in the stream, instead of unwinding them
  bool may_keep_binaries = true;             ///< in ~/.debug, those that would be gone later
  bool user_only = false;
  bool kernel_only = false;
  std::optional<std::size_t> ring_pages;  ///< a power of two; nullopt: what the lock limit allows
  std::string output;                     ///< empty: standard output
  bool quiet = false;
};

/// "0-3,8", as /sys/devices/system/cpu/online writes it; nullopt if it is no such list.
std::optional<std::vector<int>> parse_cpu_list(const std::string& list);

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const cli::CommandLine& line);

}  // namespace pe::record
