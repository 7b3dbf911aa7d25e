// SPDX-License-Identifier: MIT
#include "base/io/line_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

namespace pe {
namespace {
constexpr std::size_t kBlockBytes = 256 * 1024;  // larger blocks do not fit the L2 cache
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
