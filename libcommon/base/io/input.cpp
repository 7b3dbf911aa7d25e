// SPDX-License-Identifier: MIT
#include "base/io/input.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/io/new_file.h"
#include "base/io/regular_file.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace pe {
namespace {

constexpr const char* kData = "data";            // in perf's folder
constexpr std::size_t kBlockBytes = 256 * 1024;  // larger blocks do not fit the L2 cache

/// Returns a file in TMPDIR whose name is gone.  Throws Error.
Fd unnamed_file() {
  const char* const folder = std::getenv("TMPDIR");
  constexpr unsigned kOwner = 0600;
  const NewFile file(
      fmt::format("{}/input", folder != nullptr && *folder != '\0' ? folder : "/tmp"), kOwner);
  return Fd(::fcntl(file.fd().get(), F_DUPFD_CLOEXEC, 0));
}

ssize_t read_retrying(int fd, std::span<std::byte> into) {
  for (;;) {
    const ssize_t n = ::read(fd, into.data(), into.size());
    if (n >= 0 || errno != EINTR)
      return n;
  }
}

/// Gives a pipe the most room that every user may have.  A pipe of 64 KiB makes both ends wait for
/// each other every 64 KiB, which took a tenth of a pipeline's CPU time.
void widen_pipe(int fd) {
  constexpr int kBytes = 1 << 20;  // pipe(7), pipe-max-size
  if (const int bytes = ::fcntl(fd, F_GETPIPE_SZ); bytes > 0 && bytes < kBytes)
    static_cast<void>(::fcntl(fd, F_SETPIPE_SZ, kBytes));  // a user may have too many pipes
}

}  // namespace

Input::Input(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {
  widen_pipe(fd_.get());
  const off_t start = ::lseek(fd_.get(), 0, SEEK_CUR);
  start_ = start > 0 ? static_cast<std::uint64_t>(start) : 0;
}

Input Input::open(const std::string& path, int stdin_fd) {
  const bool is_stdin = path == "-";
  std::string name = input_name(path);
  Fd fd(is_stdin ? ::fcntl(stdin_fd, F_DUPFD_CLOEXEC, 0)
                 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw_errno(name, errno);
  struct stat status = {};
  const bool is_folder = ::fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode);
  if (is_folder)
    return open_folder(path, std::move(fd));
  Input input(std::move(fd), std::move(name));
  if (!is_stdin && file_name(path) == kData)
    input.data_path_ = path;
  return input;
}

Input Input::open_folder(const std::string& path, Fd folder) {
  Fd fd(::openat(folder.get(), kData, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    Input input(std::move(fd), path);
    input.data_path_ = path + "/" + kData;
    return input;
  }
  Input input(Fd(), path);
  input.segments_ = segments_in(folder);
  input.folder_ = std::move(folder);
  for (std::size_t i = 0; i < input.segments_.size(); ++i)  // a recorder may remove the first ones
    if (input.choose_segments(i, input.segments_.size()))
      return input;
  throw_errno(path, EISDIR);
}

bool Input::open_next_part() {
  if (data_path_.empty())
    return false;
  auto opened = open_regular(data_path_ + "." + std::to_string(parts_));
  auto* file = std::get_if<RegularFile>(&opened);
  if (file == nullptr)
    return false;
  ++parts_;
  fd_ = std::move(file->fd);
  start_ = 0;
  peeked_.clear();
  return true;
}

bool Input::choose_segments(std::size_t first, std::size_t end) {
  const auto begin = segments_.begin();
  const std::vector<std::string> chosen(begin + static_cast<std::ptrdiff_t>(first),
                                        begin + static_cast<std::ptrdiff_t>(end));
  const std::vector<std::string> all = std::exchange(segments_, chosen);
  const bool is_open = open_segment(0);
  if (!is_open)
    segments_ = all;
  return is_open;
}

bool Input::open_segment(std::size_t number) {
  Fd fd(::openat(folder_.get(), segments_.at(number).c_str(),
                 O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  auto opened = fd ? check_regular(std::move(fd)) : FileFailure::kMissing;
  auto* file = std::get_if<RegularFile>(&opened);
  if (file == nullptr)
    return false;
  fd_ = std::move(file->fd);
  start_ = 0;
  peeked_.clear();
  return true;
}

std::string segment_name(std::uint64_t number) { return fmt::format("{:010}.pe", number); }

std::optional<std::uint64_t> segment_number(std::string_view name) {
  const auto number = name.ends_with(".pe")
                          ? parse_number<std::uint64_t>(name.substr(0, name.find('.')))
                          : std::nullopt;
  return number && segment_name(*number) == name ? number : std::nullopt;
}

std::vector<std::string> segments_in(const Fd& folder) {
  std::vector<std::string> names;
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(
      ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr)
    if (segment_number(entry->d_name))
      names.emplace_back(entry->d_name);
  std::ranges::sort(names, {}, [](const std::string& name) { return segment_number(name); });
  return names;
}

std::size_t Input::read(std::span<std::byte> into) {
  if (!peeked_.empty()) {
    const std::size_t taken = std::min(into.size(), peeked_.size());
    const auto end = peeked_.begin() + static_cast<std::ptrdiff_t>(taken);
    std::copy(peeked_.begin(), end, into.begin());
    peeked_.erase(peeked_.begin(), end);
    return taken;
  }
  const ssize_t n = read_retrying(fd_.get(), into);
  if (n < 0)
    throw_errno(name_, errno);
  return static_cast<std::size_t>(n);
}

std::size_t Input::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  return offset > std::numeric_limits<std::uint64_t>::max() - start_
             ? 0
             : pe::read_at(fd_, start_ + offset, into);
}

Input Input::twin() {
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0)
    throw_errno(name_, errno);
  if (!S_ISREG(status.st_mode)) {
    Fd file = unnamed_file();
    std::vector<std::byte> block(kBlockBytes);
    while (const std::size_t n = read(block))
      if (::write(file.get(), block.data(), n) != static_cast<ssize_t>(n))
        throw_errno(name_ + ": a copy of it in TMPDIR", errno);
    if (::lseek(file.get(), 0, SEEK_SET) != 0)
      throw_errno(name_, errno);
    fd_ = std::move(file);
  }
  return again();
}

Input Input::again() const {
  // A duplicate would share the file's position.
  Fd again(::open(fmt::format("/proc/self/fd/{}", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!again || ::lseek(again.get(), static_cast<off_t>(start_), SEEK_SET) < 0)
    throw_errno(name_, errno);
  Input other(std::move(again), name_);
  other.data_path_ = data_path_;
  other.folder_ = Fd(::fcntl(folder_.get(), F_DUPFD_CLOEXEC, 0));
  other.segments_ = segments_;
  return other;
}

Bytes Input::peek(std::size_t bytes) {
  while (peeked_.size() < bytes) {
    std::vector<std::byte> more(bytes - peeked_.size());
    std::vector<std::byte> before = std::exchange(peeked_, {});
    more.resize(read(more));
    const bool at_end = more.empty();
    before.insert(before.end(), more.begin(), more.end());
    peeked_ = std::move(before);
    if (at_end)
      break;
  }
  return Bytes(peeked_).first(std::min(bytes, peeked_.size()));
}

void Input::skip_byte_order_mark() {
  constexpr std::array kMark = {std::byte{0xef}, std::byte{0xbb}, std::byte{0xbf}};
  if (std::ranges::equal(peek(kMark.size()), kMark))
    peeked_.erase(peeked_.begin(), peeked_.begin() + kMark.size());
}

std::optional<std::string> read_small_file(const std::string& path, std::size_t limit_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // a FIFO blocks
  if (!fd)
    return std::nullopt;
  std::string text;
  constexpr std::size_t kStep = 16 * 1024;
  for (;;) {
    const std::size_t old_size = text.size();
    text.resize(old_size + kStep);
    const ssize_t n =
        read_retrying(fd.get(), std::as_writable_bytes(std::span(text).subspan(old_size)));
    if (n < 0)
      return std::nullopt;
    text.resize(old_size + static_cast<std::size_t>(n));
    if (text.size() > limit_bytes)
      return std::nullopt;
    if (n == 0)
      return text;
  }
}

LineReader::LineReader(Input& input, std::size_t longest_bytes)
    : input_(input), longest_bytes_(longest_bytes), buffer_(kBlockBytes) {}

std::optional<std::string_view> LineReader::next() {
  std::size_t scanned = 0;  // bytes after begin_ known to hold no newline
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const std::size_t unread = end_ - begin_;
    if (const void* eol =
            scanned == unread ? nullptr : std::memchr(start + scanned, '\n', unread - scanned)) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(eol) - start);
      begin_ += size + 1;
      ++line_number_;
      return std::string_view(start, size);
    }
    scanned = unread;
    if (fill())
      continue;
    if (unread == 0)
      return std::nullopt;
    begin_ = end_;
    lacks_newline_ = true;
    ++line_number_;
    return std::string_view(buffer_.data() + end_ - unread, unread);
  }
}

/// Reads more bytes after the unread ones; false at the end of the input.
bool LineReader::fill() {
  if (at_end_)
    return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ > longest_bytes_)
    throw Error(fmt::format("{}: line {} has more than {} bytes", input_.name(), line_number_ + 1,
                            longest_bytes_));
  if (end_ == buffer_.size())
    buffer_.resize(2 * buffer_.size());
  const std::size_t n = input_.read(std::as_writable_bytes(std::span(buffer_).subspan(end_)));
  end_ += n;
  at_end_ = n == 0;
  return n > 0;
}

}  // namespace pe
