// SPDX-License-Identifier: MIT
#include "io/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace pe::io {
namespace {

FileFailure failure_of(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ESRCH:  // a file in /proc whose process is gone
      return FileFailure::kMissing;
    case EACCES:
    case EPERM:
      return FileFailure::kPermission;
    case ELOOP:  // O_NOFOLLOW met a link
    case ENXIO:  // a socket
    case ENODEV:
    case EISDIR:
      return FileFailure::kNotRegular;
    default:
      return FileFailure::kUnreadable;
  }
}

}  // namespace

std::variant<RegularFile, FileFailure> open_regular(const std::string& path, Links links) {
  // Without O_NONBLOCK the open of a FIFO would wait for a writer.
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  Fd fd(::open(path.c_str(), flags));
  if (!fd)
    return failure_of(errno);
  return check_regular(std::move(fd));
}

std::variant<RegularFile, FileFailure> check_regular(Fd fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0)
    return failure_of(errno);
  if (!S_ISREG(status.st_mode))
    return FileFailure::kNotRegular;
  return RegularFile{std::move(fd), static_cast<std::uint64_t>(status.st_size), status.st_uid};
}

std::size_t read_at(const Fd& fd, std::uint64_t offset, std::span<std::byte> into) {
  constexpr std::uint64_t kLast = std::numeric_limits<off_t>::max();
  if (offset > kLast || into.size() > kLast - offset)
    return 0;
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd.get(), into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace pe::io
