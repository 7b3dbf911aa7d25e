// Opens the file that a process has mapped: exactly that file, if it still exists.
//
// The path of a mapping is the path that the process sees.  Here it may name another file, if the
// process is in a container's mount namespace, or none, after an upgrade.  The recorded build id
// identifies the right file in any place; without a build id the recorded inode does.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <optional>

#include "objects/image.h"
#include "stream/proc/process_table.h"

namespace pe::objects {

class BuildIdCache;

/// The files to accept if no build id was recorded.
enum class FileMatch {
  kSameInode,  ///< only the file with the recorded inode: the process is running
  kAny,        ///< preferably that, else any file with the path: recorded elsewhere
};

/// Tries in this order: the mapping itself (/proc/PID/map_files, which needs CAP_SYS_ADMIN or
/// CAP_CHECKPOINT_RESTORE), the process's program (/proc/PID/exe), the path in the process's root,
/// the path here, and `cache`, which may be null.  If `pid` is 0, it skips the files of the
/// process.  Never blocks.  Opens only regular files, and for "[vdso]" this process's own vdso.
/// kOtherBuildId if all files found have another build id than the recorded one.
OpenResult open_mapped_image(pid_t pid, const stream::Mapping& mapping, FileMatch match,
                             const BuildIdCache* cache);

/// Opens the file with the recorded build id through the process itself.  Accepts only a file that
/// the process has really mapped, even if the process renames or replaces files meanwhile.
OpenResult open_from_process(pid_t pid, const stream::Mapping& mapping);

/// Opens the file at the mapping's path here; nullopt if it lacks the recorded build id.
std::optional<Image> open_here(const stream::Mapping& mapping);

/// Does the image have another inode than the recorded file?  False if a build id or no inode was
/// recorded.
bool has_other_inode(const Image& image, const stream::MappedFile& recorded);

/// Removes " (deleted)", which the kernel appends to the path of a deleted file.
std::string without_deleted(const std::string& path);

}  // namespace pe::objects
