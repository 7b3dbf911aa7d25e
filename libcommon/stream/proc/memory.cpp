// SPDX-License-Identifier: MIT
#include "stream/proc/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "base/fd.h"

namespace pe::stream {
namespace {

/// Reads the bytes from /proc/PID/mem, for when a system call filter denies process_vm_readv(2).
std::size_t read_file(pid_t pid, std::uint64_t avma, std::span<std::byte> into) {
  const std::string path = fmt::format("/proc/{}/mem", pid);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::size_t done = 0;
  while (file && done < into.size()) {
    const ssize_t n = ::pread(file.get(), into.data() + done, into.size() - done,
                              static_cast<off_t>(avma + done));
    if (n <= 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

std::size_t read_memory(pid_t pid, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kPageBytes = 4096;
  constexpr std::size_t kPieces = 256;
  std::size_t done = 0;
  while (done < into.size()) {
    // The call copies each piece completely or not at all, so each piece is within one page.
    std::array<iovec, kPieces> pieces;
    std::size_t count = 0;
    std::size_t wanted = 0;
    for (; count < kPieces && done + wanted < into.size(); ++count) {
      const std::uint64_t from = avma + done + wanted;
      const std::size_t bytes =
          std::min<std::size_t>(kPageBytes - from % kPageBytes, into.size() - done - wanted);
      // An address in another process.
      pieces[count] = {reinterpret_cast<void*>(from), bytes};  // NOLINT(performance-no-int-to-ptr)
      wanted += bytes;
    }
    const iovec local{into.data() + done, wanted};
    const ssize_t copied = ::process_vm_readv(pid, &local, 1, pieces.data(), count, 0);
    if (copied < 0 && (errno == ENOSYS || errno == EPERM))
      return done + read_file(pid, avma + done, into.subspan(done));
    if (copied <= 0)
      return done;
    done += static_cast<std::size_t>(copied);
    if (static_cast<std::size_t>(copied) < wanted)
      return done;
  }
  return done;
}

bool is_memory_forbidden(pid_t pid) {
  std::byte byte{};
  const iovec local{&byte, 1}, nowhere{nullptr, 1};
  if (::process_vm_readv(pid, &local, 1, &nowhere, 1, 0) >= 0 || errno != EPERM)
    return false;
  const Fd file(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return !file && (errno == EACCES || errno == EPERM);
}

}  // namespace pe::stream
