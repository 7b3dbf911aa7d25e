// Opens a file as a process sees it, which may be in a container.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>
#include <variant>

#include "base/io/regular_file.h"

namespace pe::stream {

/// Opens `path`, which starts with '/', below the root of `pid` (/proc/PID/root, proc(5)).  The
/// kernel resolves symbolic links as it does for the process, and never leaves its root
/// (openat2(2), RESOLVE_IN_ROOT).
std::variant<RegularFile, FileFailure> open_in_root(pid_t pid, const std::string& path,
                                                    Links links = Links::kFollow);

/// Does the same below the folder `root`, which we name: "/proc/PID/root".
std::variant<RegularFile, FileFailure> open_below(const std::string& root, const std::string& path,
                                                  Links links = Links::kFollow);

}  // namespace pe::stream
