// SPDX-License-Identifier: MIT
#include "base/io/regular_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <span>
#include <utility>

#include "base/parse_number.h"

namespace pe {
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

Fd find(const std::string& path, Links links) {
  return Fd(::open(path.c_str(), O_PATH | O_CLOEXEC | (links == Links::kRefuse ? O_NOFOLLOW : 0)));
}

/// Returns whether the kernel generates the files of this file system (linux/magic.h).
bool is_of_kernel(std::uint64_t magic) {
  constexpr std::array<std::uint32_t, 12> kMagics = {
      PROC_SUPER_MAGIC, SYSFS_MAGIC,        TRACEFS_MAGIC,       DEBUGFS_MAGIC,
      SECURITYFS_MAGIC, SELINUX_MAGIC,      BPF_FS_MAGIC,        CGROUP_SUPER_MAGIC,
      PSTOREFS_MAGIC,   DEVPTS_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, EFIVARFS_MAGIC};
  return std::find(kMagics.begin(), kMagics.end(), magic) != kMagics.end();
}

}  // namespace

std::variant<RegularFile, FileFailure> open_regular(const std::string& path, Links links) {
  const Fd found = find(path, links);
  return found ? open_regular(found) : failure_of(errno);
}

std::variant<RegularFile, FileFailure> open_stored(const std::string& path, Links links) {
  const Fd found = find(path, links);
  return found ? open_stored(found) : failure_of(errno);
}

std::variant<RegularFile, FileFailure> open_stored(const Fd& path) {
  struct statfs system = {};
  if (::fstatfs(path.get(), &system) != 0)
    return failure_of(errno);
  return is_of_kernel(static_cast<std::uint32_t>(system.f_type)) ? FileFailure::kNotRegular
                                                                 : open_regular(path);
}

std::variant<RegularFile, FileFailure> open_regular(const Fd& path) {
  struct stat status = {};
  if (::fstat(path.get(), &status) != 0)
    return failure_of(errno);
  if (!S_ISREG(status.st_mode))
    return FileFailure::kNotRegular;
  // This opens the very file that was checked, whatever its path names by now (proc(5),
  // /proc/PID/fd).
  const std::string again = "/proc/self/fd/" + std::to_string(path.get());
  Fd fd(::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd)
    return failure_of(errno);
  return check_regular(std::move(fd));
}

std::variant<RegularFile, FileFailure> check_regular(Fd fd) {
  struct stat status = {};
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

namespace {

std::uint64_t nanoseconds(const timespec& time) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t read_boot_number() {
  std::array<char, 64> text{};
  const auto opened = open_regular("/proc/sys/kernel/random/boot_id");
  const auto* file = std::get_if<RegularFile>(&opened);
  const std::size_t bytes =
      file == nullptr ? 0 : read_at(file->fd, 0, std::as_writable_bytes(std::span(text)));
  // The first 64 of 128 bits: "6f0b0d5a-91b4-4a2c-...".
  constexpr std::size_t kDigits = 16;
  std::string digits;
  for (const char c : std::span(text).first(bytes))
    if (c != '-' && digits.size() < kDigits)
      digits += c;
  const auto number = parse_number<std::uint64_t>(digits, 16);
  return number && *number != 0 ? *number : 1;
}

}  // namespace

FileIdentity identity_of(const struct stat& status) {
  return {.boot = boot_number(),
          .device = status.st_dev,
          .inode = status.st_ino,
          .changed_ns = nanoseconds(status.st_ctim)};
}

FileIdentity identity_at(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? identity_of(status) : FileIdentity{};
}

std::uint64_t boot_number() {
  static const std::uint64_t number = read_boot_number();
  return number;
}

}  // namespace pe
