// The options that recorders share: target, duration, rings, and output.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "recording/request.h"

namespace pe::recording {

/// Adds --pid, --children, --tid, --all, --cgroup, --duration and --span.
void add_target_options(boost::program_options::options_description& options);
/// Adds --user-only, --no-cache, --trust, --mmap-pages, --output, --summary,
/// --verbose and --quiet.
void add_stream_options(boost::program_options::options_description& options);

/// Splits "a,b,c" at its commas.
std::vector<std::string> split_list(const std::string& list);

/// Parses a list such as "0-3,8", as /sys/devices/system/cpu/online has it; nullopt if it is
/// malformed.
std::optional<std::vector<int>> parse_cpu_list(const std::string& list);

/// Reads --pid, --children, --tid, --all, --cpu and --cgroup, as far as the tool has them.  If they
/// name no target, the command is the target (is_command, and no process yet).  `known_options`
/// lists the choices for the user.  Throws UsageError.
Target read_target(const CommandLine& line, std::string_view known_options);

/// Returns --duration in nanoseconds; nullopt: until the target ends or Ctrl-C.  Throws UsageError.
std::optional<std::uint64_t> read_duration(const CommandLine& line);

/// Reads --no-cache, --trust, --user-only, --kernel-only and --mmap-pages.  Throws UsageError.
void read_recording(const CommandLine& line, Request& request);

/// Reads --stack-size, in bytes.  Throws UsageError.
std::optional<std::uint32_t> read_stack_bytes(const CommandLine& line);
/// Parses the size of a stack copy, rounded up to 8 bytes.  Throws UsageError that names `option`.
std::uint32_t parse_stack_bytes(std::string_view option, std::string_view value);

/// Parses a number above 0.  Throws UsageError "<option>: <problem>: '<value>'" if `value` is not
/// one.
std::uint64_t read_positive(std::string_view option, std::string_view problem,
                            std::string_view value);

/// Finds the processes with the target's names, and the processes that all these have started, if
/// those are wanted.  Sorts the lists and removes duplicates.  Removes threads of processes that
/// are recorded as a whole.  Throws Error if --pid names a thread, or if no process has one of the
/// names; Denied if another user's process or thread may not be recorded.
void tidy(Target& target);

}  // namespace pe::recording
