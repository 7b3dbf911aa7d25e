// Finds the file of a probe, as the recorded programs see it.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/request.h"

namespace pe::recorder {

/// Returns the path by which this process, and the kernel for it, find the file `name`:
///
///     ""                the recorded program
///     "/usr/bin/x"      that file; of a process in a container, below its root
///     "libc.so.6", "c"  a library that the process has mapped, or of the usual folders
///     "bash"            else a program in PATH
///
/// Throws Error with the reason if there is none.
std::string find_probed_file(const std::string& name, const record::Target& target,
                             const std::vector<std::string>& command);

}  // namespace pe::recorder
