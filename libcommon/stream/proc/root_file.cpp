// SPDX-License-Identifier: MIT
#include "stream/proc/root_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "stream/proc/maps.h"

namespace pe::stream {

std::variant<RegularFile, FileFailure> open_in_root(pid_t pid, const std::string& path,
                                                    Links links) {
  return open_below(fmt::format("/proc/{}/root", live_thread_of(pid)), path, links);
}

std::variant<RegularFile, FileFailure> open_below(const std::string& root, const std::string& path,
                                                  Links links) {
  const Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder)
    return FileFailure::kMissing;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd file(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (!file)
    return FileFailure::kMissing;
  return open_stored(file);
}

}  // namespace pe::stream
