// SPDX-License-Identifier: MIT
#include "io/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/error.h"

namespace pe::io {
namespace {

constexpr std::size_t kFlushAt = 64 * 1024;  // bytes; a pipe's default size

int create_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    throw_errno(path, errno);
  return fd;
}

}  // namespace

void FdOutput::write(std::string_view bytes) {
  if (buffer_.empty() && bytes.size() >= kFlushAt)
    return write_through(bytes);  // a block already: no copy
  buffer_ += bytes;
  if (buffer_.size() >= kFlushAt)
    flush();
}

void FdOutput::flush() { write_through(buffer_); }

void FdOutput::wait_by(const WaitForRoom& wait) {
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && !S_ISREG(status.st_mode))
    wait_ = wait;
}

/// Writes all of `left`, which is the buffer or comes in its place; empties the buffer.
void FdOutput::write_through(std::string_view left) {
  while (!left.empty()) {
    if (wait_ && !wait_(fd_))
      break;
    // What poll(2) calls room in a pipe is room for a page (fs/pipe.c); more may block.
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

void FileOutput::discard() noexcept {
  if (::ftruncate(fd_.get(), 0) != 0)
    return;  // a device or a pipe, which cannot be
}

FileOutput::FileOutput(const std::string& path) : fd_(create_file(path)), out_(fd_.get(), path) {}

}  // namespace pe::io
