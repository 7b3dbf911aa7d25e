// The options that all recorders have, read: whom to record, for how long, with which rings.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "record/request.h"

namespace pe::record {

/// The parts of "a,b,c".
std::vector<std::string> split_list(const std::string& list);

/// "0-3,8", as /sys/devices/system/cpu/online writes it; nullopt if it is no such list.
std::optional<std::vector<int>> parse_cpu_list(const std::string& list);

/// --pid, --children, --tid, --all, --cpu and --cgroup, those of them that the tool has; a command
/// is the target where they name none (is_command, and no process yet).  `known_options` tells the
/// user what there is to choose from.  Throws UsageError.
Target read_target(const CommandLine& line, std::string_view known_options);

/// --duration in nanoseconds; nullopt: until the target ends or Ctrl-C.  Throws UsageError.
std::optional<std::uint64_t> read_duration(const CommandLine& line);

/// --mmap-pages.  Throws UsageError.
std::optional<std::size_t> read_ring_pages(const CommandLine& line);

/// --stack-size in bytes.  Throws UsageError.
std::optional<std::uint32_t> read_stack_bytes(const CommandLine& line);

/// A number above 0; throws UsageError "<option>: <problem>: '<value>'" if `value` is none.
std::uint64_t read_positive(std::string_view option, std::string_view problem,
                            std::string_view value);

/// Finds the processes of the target's names, and those that the processes have started, if they
/// are wanted.  Sorts what was asked for, each once; a thread of a process that is recorded as a
/// whole is part of it.  Throws Error where --pid names a thread, or no process has a name.
void tidy(Target& target);

}  // namespace pe::record
