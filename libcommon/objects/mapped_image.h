// Opening the file that a process has mapped: the very one, where it can still be had.
//
// The path of a mapping is what the process sees: it may mean another file here, in a container's
// mount namespace, or none any more, after an upgrade.  A recorded build id tells which one is
// right, wherever it is found; without one the recorded inode does.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <optional>

#include "objects/image.h"
#include "stream/proc/process_table.h"

namespace pe::objects {

class BuildIdCache;

/// What to take where no build id was recorded.
enum class FileMatch {
  kSameInode,  ///< the recorded inode, or none: the process is running
  kAny,        ///< that if there is one, else whatever bears the name: recorded elsewhere
};

/// Tried in this order: the mapping itself (/proc/PID/map_files, which needs CAP_SYS_ADMIN or
/// CAP_CHECKPOINT_RESTORE), the process's program (/proc/PID/exe), the path in the process's root,
/// the path here, and `cache`, which may be null.  `pid` 0: none of the process's.  Never blocks;
/// what is opened is a regular file, or this process's own vdso for "[vdso]".  kOtherBuildId if
/// there are only files with another build id than the recorded one.
OpenResult open_mapped_image(pid_t pid, const stream::Mapping& mapping, FileMatch match,
                             const BuildIdCache* cache);

/// The file of recorded build id from the process itself: nothing but what it really has mapped
/// there, however the process may rename and replace files meanwhile.
OpenResult open_from_process(pid_t pid, const stream::Mapping& mapping);

/// The file at the mapping's path here; nullopt if that is not of the recorded build id.
std::optional<Image> open_here(const stream::Mapping& mapping);

/// Was another file recorded, as far as inodes tell?  False where there is a build id to tell it,
/// or no inode.
bool has_other_inode(const Image& image, const stream::MappedFile& recorded);

/// Without " (deleted)", which the kernel adds to the path of a file that has lost its name.
std::string without_deleted(const std::string& path);

}  // namespace pe::objects
