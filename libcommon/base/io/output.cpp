// SPDX-License-Identifier: MIT
#include "base/io/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace pe {
namespace {

constexpr std::size_t kFlushAt = 64 * 1024;  // bytes; a pipe's default size

/// Returns our descriptor that `path` names.  Only these fixed names are such: any other way to a
/// descriptor leads through links that may be another user's.
std::optional<int> named_descriptor(std::string_view path) {
  if (path == "/dev/stdout")
    return STDOUT_FILENO;
  if (path == "/dev/stderr")
    return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder))
      if (const auto number = parse_number<std::uint16_t>(path.substr(folder.size())))
        return *number;
  return std::nullopt;
}

/// Returns another descriptor of the same open file: a file that is opened again starts at its
/// first byte.  Throws Error.
Fd duplicate(int descriptor, const std::string& path) {
  Fd fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!fd)
    throw_errno(path, errno);
  return fd;
}

/// Opens the device or pipe at `place`; none if a new file must be created.  Throws Error.
Fd open_in_place(const Place& place) {
  const Fd found(::openat(place.folder.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!found || ::fstat(found.get(), &status) != 0)
    return {};
  if (S_ISDIR(status.st_mode))
    throw_errno(place.path, EISDIR);
  if (S_ISBLK(status.st_mode))
    throw Error(place.path + ": is a block device");
  if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))
    return {};
  // Another user could have put it there to block us, or to read data that is not theirs.
  if (S_ISFIFO(status.st_mode) && status.st_uid != ::geteuid() && status.st_uid != 0)
    throw Error(place.path + ": is another user's pipe");
  // This opens the very file that was checked, whatever has its name by now.
  const std::string same = "/proc/self/fd/" + std::to_string(found.get());
  Fd fd(::open(same.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd)
    throw_errno(place.path, errno);
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

void TerminalOutput::write(std::string_view bytes) {
  const std::size_t whole = bytes.rfind('\n') + 1;  // 0 if there is no line end
  line_ += bytes.substr(0, whole);
  if (whole != 0) {
    out_.write(printable_text(line_));
    line_.clear();
  }
  line_ += bytes.substr(whole);
}

void TerminalOutput::flush() {
  out_.write(printable_text(line_));
  line_.clear();
  out_.flush();
}

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

FileOutput::FileOutput(const std::string& path, Named named) {
  if (const auto descriptor = named_descriptor(path)) {
    in_place_ = duplicate(*descriptor, path);
  } else {
    Place place(path);
    in_place_ = open_in_place(place);
    if (!in_place_)
      file_.emplace(std::move(place));
  }
  out_.emplace(file_ ? file_->fd().get() : in_place_.get(), path);
  if (out_->is_terminal())
    terminal_.emplace(*out_);
  if (file_ && named == Named::kAtOnce)
    file_->keep();
}

void FileOutput::keep() {
  flush();
  if (file_)
    file_->keep();
}

}  // namespace pe
