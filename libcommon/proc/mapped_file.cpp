// SPDX-License-Identifier: MIT
#include "proc/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace pe::proc {
namespace {

using Opened = std::variant<io::RegularFile, io::FileFailure>;

bool has_inode(const Opened& opened, std::uint64_t inode) {
  struct stat status {};
  const auto* file = std::get_if<io::RegularFile>(&opened);
  return file != nullptr && ::fstat(file->fd.get(), &status) == 0 && status.st_ino == inode;
}

Opened open_mapping(pid_t pid, const Mapping& mapping) {
  return io::open_regular(
      fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end));
}

/// Symbolic links on the way are the process's own, so they lead to what it would find.
Opened open_in_root(pid_t pid, const std::string& path) {
  const Fd root(
      ::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root)
    return io::FileFailure::kMissing;
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd file(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  if (!file)
    return io::FileFailure::kMissing;
  return io::check_regular(std::move(file));
}

/// What the kernel adds to the path of a file that has lost its name (d_path()).
std::string without_deleted(const std::string& path) {
  constexpr std::string_view kDeleted = " (deleted)";
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

}  // namespace

Opened open_mapped_file(pid_t pid, const Mapping& mapping, FileMatch match) {
  const std::uint64_t inode = mapping.file->inode;
  const std::string path = without_deleted(mapping.file->path);
  if (pid != 0) {
    // What is mapped there now: of the same process, or of one that has its number.
    Opened mapped = open_mapping(pid, mapping);
    if (has_inode(mapped, inode))
      return mapped;
  }
  Opened in_root = pid != 0 ? open_in_root(pid, path) : io::FileFailure::kMissing;
  if (has_inode(in_root, inode))
    return in_root;
  Opened here = io::open_regular(path);
  if (has_inode(here, inode))
    return here;
  if (inode != 0 && match == FileMatch::kSameInode && std::holds_alternative<io::RegularFile>(here))
    return io::FileFailure::kMissing;  // another one has its name
  return inode == 0 && std::holds_alternative<io::RegularFile>(in_root) ? std::move(in_root)
                                                                        : std::move(here);
}

}  // namespace pe::proc
