// SPDX-License-Identifier: MIT
#include "base/io/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/fd.h"
#include "base/io/new_file.h"
#include "base/io/output.h"

namespace pe {
namespace {

/// Syncs the folder, because only that makes the name of a file durable.
void sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    throw_errno(folder, errno);
}

}  // namespace

void replace_file(const std::string& path, std::string_view content, Outlives outlives) {
  NewFile file(path);
  FdOutput out(file.fd().get(), path);
  out.write(content);
  out.flush();
  if (outlives == Outlives::kMachine && ::fsync(file.fd().get()) != 0)
    throw_errno(path, errno);
  file.keep();
  if (outlives == Outlives::kMachine)
    sync_folder_of(path);
}

}  // namespace pe
