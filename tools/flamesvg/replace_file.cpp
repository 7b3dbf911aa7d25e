// SPDX-License-Identifier: MIT
#include "flamesvg/replace_file.h"

#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/io/new_file.h"
#include "base/io/output.h"

namespace pe {
void replace_file(const std::string& path, std::string_view content, Outlives outlives) {
  NewFile file(path);
  FdOutput out(file.fd().get(), path);
  out.write(content);
  out.flush();
  if (outlives == Outlives::kMachine && ::fsync(file.fd().get()) != 0)
    throw_errno(path, errno);
  file.keep();
  if (outlives == Outlives::kMachine)
    file.sync_folder();
}

}  // namespace pe
