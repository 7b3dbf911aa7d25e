// SPDX-License-Identifier: MIT
#include "base/io/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/error.h"

namespace pe {
namespace {

constexpr std::size_t kFlushAt = 64 * 1024;  // bytes; a pipe's default size

/// Returns whether `path` names an open descriptor, which no new file can replace.
bool is_descriptor(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/");
}

/// Opens the device, pipe or descriptor of that name; none if a new file must be created.  Follows
/// a link to one, because nothing is created or replaced there.  Throws Error.
Fd open_in_place(const std::string& path) {
  const Fd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status = {};
  if (!found || ::fstat(found.get(), &status) != 0)
    return {};
  if (S_ISDIR(status.st_mode))
    throw_errno(path, EISDIR);
  if (S_ISREG(status.st_mode) && !is_descriptor(path))
    return {};
  // Another user could have put it there to block us, or to read data that is not theirs.
  if (S_ISFIFO(status.st_mode) && status.st_uid != ::geteuid() && status.st_uid != 0)
    throw Error(path + ": is another user's pipe");
  const std::string same = "/proc/self/fd/" + std::to_string(found.get());
  Fd fd(::open(same.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
  if (!fd)
    throw_errno(path, errno);
  return fd;
}

}  // namespace

void FdOutput::write(std::string_view bytes) {
  if (buffer_.empty() && bytes.size() >= kFlushAt)
    return write_through(bytes);  // a whole block needs no copy
  buffer_ += bytes;
  if (buffer_.size() >= kFlushAt)
    flush();
}

void FdOutput::flush() { write_through(buffer_); }

void FdOutput::wait_by(const WaitForRoom& wait) {
  struct stat status = {};
  if (::fstat(fd_, &status) == 0 && !S_ISREG(status.st_mode))
    wait_ = wait;
}

/// Writes all of `left`, which is the buffer or replaces an empty one; empties the buffer.
void FdOutput::write_through(std::string_view left) {
  while (!left.empty()) {
    if (wait_ && !wait_(fd_))
      break;
    // poll(2) reports a pipe writable when it has room for a page (fs/pipe.c); more may block.
    const std::size_t bytes = wait_ ? std::min<std::size_t>(left.size(), PIPE_BUF) : left.size();
    const ssize_t n = ::write(fd_, left.data(), bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      const int code = errno;
      buffer_.clear();  // never try the same bytes again
      if (code == EPIPE)
        throw BrokenPipe(name_);
      throw_errno(name_, code);
    }
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

bool FdOutput::is_terminal() const noexcept { return ::isatty(fd_) == 1; }

void MessageOutput::flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

bool MessageOutput::is_terminal() const noexcept { return ::isatty(fd_) == 1; }

void HeldOutput::write(std::string_view bytes) {
  if (is_held_)
    held_ += bytes;
  else
    out_.write(bytes);
}

void HeldOutput::flush() {
  if (!is_held_)
    out_.flush();
}

void HeldOutput::release() {
  if (!is_held_)
    return;
  is_held_ = false;
  out_.write(held_);
  std::string().swap(held_);
  out_.flush();
}

FileOutput::FileOutput(const std::string& path, Named named)
    : in_place_(open_in_place(path)),
      file_(in_place_ ? std::nullopt : std::optional<NewFile>(std::in_place, path)),
      out_(file_ ? file_->fd().get() : in_place_.get(), path) {
  if (file_ && named == Named::kAtOnce)
    file_->keep();
}

void FileOutput::keep() {
  out_.flush();
  if (file_)
    file_->keep();
}

}  // namespace pe
