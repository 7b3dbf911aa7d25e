// Opens the file that a process has mapped: exactly that file, if it still exists.
//
// The path of a mapping is the path that the process sees.  Here it may name another file, if the
// process is in a container's mount namespace, or none, after an upgrade.  The recorded identity
// and build id select the right file in any place; without them the recorded inode does.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/io/regular_file.h"
#include "objects/image.h"
#include "stream/proc/process_table.h"

namespace pe::objects {

// The code that the kernel maps into every process: the vdso.

/// Returns a copy of this process's own vdso.  It serves for every process of this boot
/// and this bitness: the kernel maps the same vdso, at a different address in each.
/// kMissing if the process has none.
OpenResult own_vdso();

class BuildIdCache;

/// The files to accept if no build id was recorded.
enum class FileMatch {
  kSameInode,  ///< only the file with the recorded inode: the process is running
  kAny,        ///< preferably that, else any file with the path: recorded elsewhere
};

/// Tries in this order: the path here, the mapping itself (/proc/PID/map_files, which needs
/// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), the process's program (/proc/PID/exe), the path in the
/// process's root, and `cache`, which may be null.  If `pid` is 0, or the recorded process cannot
/// run here, it skips the files of the process.  Never blocks.  Opens only regular files, and for
/// "[vdso]" this process's own vdso.  kOtherBuildId if all files found have another build id than
/// the recorded one.
///
/// A file of the process must be the recorded one (file_identity.h), and have its build id.  A file
/// at the path here must have the build id, and also be the recorded one unless it is trusted or
/// comes from another boot.
OpenResult open_mapped_image(pid_t pid, const stream::Mapping& mapping, FileMatch match,
                             const BuildIdCache* cache);

/// How to open a mapped file, and the key for what was found in it.
struct FileQuery {
  const stream::MappedFile* file = nullptr;
  std::uint32_t process = 0;  ///< whose addresses it describes; 0: those of all processes
  pid_t pid = 0;              ///< for open_mapped_image()

  [[nodiscard]] auto key() const { return std::pair(file, process); }
};

/// Decides whether processes that have mapped the same path and build id share results.  Without an
/// identity in the record they share only those from a file that needs no process to be found.
/// Otherwise one process could choose the symbols of others, in their own mount namespaces.
class SharedFiles {
 public:
  /// `cache` must outlive this.
  explicit SharedFiles(const BuildIdCache* cache) : cache_(cache) {}

  FileQuery query(std::uint32_t pid, const stream::Mapping& mapping);

 private:
  const BuildIdCache* cache_;
  std::unordered_map<const stream::MappedFile*, bool> is_here_;
};

/// Returns the identity of the file that the process has just mapped; unknown if the process has
/// ended, or hides it.
FileIdentity identity_of_mapping(pid_t pid, const stream::Mapping& mapping);

/// Opens the file with the recorded build id through the process itself.  Accepts only a file that
/// the process has really mapped, even if the process renames or replaces files meanwhile.
OpenResult open_from_process(pid_t pid, const stream::Mapping& mapping);

/// Opens the file at the mapping's path here, if open_mapped_image() would use it.
std::optional<Image> open_here(const stream::Mapping& mapping);

/// Does the image have another inode than the recorded file?  False if a build id or no inode was
/// recorded.
bool has_other_inode(const Image& image, const stream::MappedFile& recorded);

/// Removes " (deleted)", which the kernel appends to the path of a deleted file.
std::string without_deleted(const std::string& path);

// Is an image a shared library, or a program?  Which name does the library have?

/// Programs are ET_EXEC, or ET_DYN with DF_1_PIE.  Linkers before binutils 2.26 did not set it, but
/// gave only libraries a DT_SONAME.  An ET_DYN image without either is a program if it requests an
/// interpreter (gABI chapter 5, "Dynamic Section").
bool is_shared_library(const Image& image);

/// Returns the name by which programs request a library (DT_SONAME); empty if it has none.
std::string soname_of(const Image& image);

}  // namespace pe::objects
