// Opens the file of a probe, as the recorded programs see it.
//
// The file is opened once.  Whoever needs it later uses the descriptor: a recorded program may have
// swapped the path by then.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "objects/image.h"
#include "recording/request.h"

namespace pe::recorder {

struct FoundFile {
  std::string path;  ///< for messages
  /// The root in which the path was resolved, "/proc/PID/root", of which it has the prefix; empty:
  /// ours.
  std::string root = {};
  objects::OpenResult opened;
};

/// Opens the file `name`:
///
///     ""                the recorded program
///     "/usr/bin/x"      that file; of a process in a container, below its root
///     "libc.so.6", "c"  a library that the process has mapped, or of the usual folders
///     "bash"            else a program in PATH
///
/// Throws Error with the reason if there is none.
FoundFile find_probed_file(const std::string& name, const recording::Target& target,
                           const std::vector<std::string>& command);

}  // namespace pe::recorder
