// Opening the file that a process has mapped: the very one, where it can still be had.
//
// The path of a mapping is what the process sees: it may mean another file here, in a container's
// mount namespace, or none any more, after an upgrade.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <variant>

#include "io/regular_file.h"
#include "proc/process_table.h"

namespace pe::proc {

enum class FileMatch {
  kSameInode,  ///< the recorded inode, or none: the process is running
  kAny,        ///< that if there is one, else whatever bears the name: recorded elsewhere
};

/// Tried in this order: the mapping itself (/proc/PID/map_files, which needs CAP_SYS_ADMIN or
/// CAP_CHECKPOINT_RESTORE), the path in the process's root, and the path here.  `pid` 0: just the
/// path here.  Never blocks; what is opened is a regular file.
std::variant<io::RegularFile, io::FileFailure> open_mapped_file(pid_t pid, const Mapping& mapping,
                                                                FileMatch match);

}  // namespace pe::proc
