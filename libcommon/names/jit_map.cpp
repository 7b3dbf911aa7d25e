// SPDX-License-Identifier: MIT
#include "names/jit_map.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "base/parse_number.h"
#include "stream/proc/process_table.h"

namespace pe::names {
namespace {

/// Cuts a hexadecimal number and the blank after it off the start of `text`.
std::optional<std::uint64_t> take_hex(std::string_view& text) {
  if (text.starts_with("0x"))
    text.remove_prefix(2);
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos)
    return std::nullopt;
  const auto number = parse_number<std::uint64_t>(text.substr(0, blank), 16);
  text.remove_prefix(blank + 1);
  return number;
}

JitMapFailure failure_of(FileFailure failure) {
  switch (failure) {
    case FileFailure::kMissing:
      return JitMapFailure::kMissing;
    case FileFailure::kPermission:
      return JitMapFailure::kPermission;
    case FileFailure::kNotRegular:
      return JitMapFailure::kNotRegular;
    case FileFailure::kUnreadable:
      break;
  }
  return JitMapFailure::kUnreadable;
}

}  // namespace

std::variant<RegularFile, JitMapFailure> open_jit_file(const std::string& path, uid_t owner,
                                                       pid_t root_of) {
  auto opened = root_of != 0 ? stream::open_in_root(root_of, path, Links::kRefuse)
                             : open_stored(path, Links::kRefuse);
  if (const auto* failure = std::get_if<FileFailure>(&opened))
    return failure_of(*failure);
  auto& file = std::get<RegularFile>(opened);
  if (file.owner != owner)
    return JitMapFailure::kWrongOwner;
  return std::move(file);
}

bool JitMap::add_line(std::string_view line) {
  const bool added = add_unfinished_line(line);
  bad_lines_ += added ? 0 : 1;
  return added;
}

bool JitMap::add_unfinished_line(std::string_view line) {
  std::string_view name = line.substr(0, std::min(line.size(), kMaxLineBytes + 1));
  const auto start = take_hex(name);
  const auto size = start ? take_hex(name) : std::nullopt;
  return size && line.size() <= kMaxLineBytes && add(*start, *size, name);
}

bool JitMap::add(std::uint64_t start, std::uint64_t size_bytes, std::string_view name) {
  const bool is_entry = size_bytes > 0 && size_bytes <= kMaxEntryBytes &&
                        start <= std::numeric_limits<std::uint64_t>::max() - size_bytes &&
                        !name.empty();
  constexpr std::size_t kBytesOfEntry = sizeof(Entry) + 2 * 64;  // and of two ranges
  if (!is_entry || entries_.size() >= kMaxEntries || names_.size() + name.size() > kMaxNamesBytes ||
      !may_keep(name.size() + kBytesOfEntry))
    return false;
  entries_.push_back(
      {start, static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(name.size())});
  names_ += name;
  newest_end_ = start + size_bytes;
  cover(start, start + size_bytes, static_cast<std::uint32_t>(entries_.size() - 1));
  return true;
}

/// Makes `entry` the newest in [begin, end).  Each call adds at most two ranges, and
/// removes those that `entry` hides completely.
void JitMap::cover(std::uint64_t begin, std::uint64_t end, std::uint32_t entry) {
  auto at = ranges_.lower_bound(begin);
  if (at != ranges_.begin()) {
    const auto before = std::prev(at);
    const Range old = before->second;
    if (old.end > begin)
      before->second.end = begin;
    if (old.end > end)
      at = ranges_.emplace_hint(at, end, old);
  }
  while (at != ranges_.end() && at->first < end) {
    const Range old = at->second;
    at = ranges_.erase(at);
    if (old.end > end)
      at = ranges_.emplace_hint(at, end, old);
  }
  ranges_.emplace_hint(at, begin, Range{end, entry});
}

std::optional<JitSymbol> JitMap::find(std::uint64_t avma) const {
  const auto next = ranges_.upper_bound(avma);
  if (next == ranges_.begin() || avma >= std::prev(next)->second.end)
    return std::nullopt;
  const Entry& entry = entries_[std::prev(next)->second.entry];
  return JitSymbol{std::string_view(names_).substr(entry.name, entry.name_bytes), entry.start,
                   avma - entry.start};
}

bool JitMap::may_keep(std::size_t bytes) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  if (bytes > room_) {
    const std::size_t more = std::max(bytes - room_, kAtOnce);
    if (!kept_.may_add(more))
      return false;
    room_ += more;
  }
  room_ -= bytes;
  return true;
}

void JitMap::clear() {
  JitMap empty;
  kept_.release();
  empty.kept_ = std::move(kept_);
  *this = std::move(empty);
}

std::variant<JitMapFile, JitMapFailure> JitMapFile::open(const std::string& path, uid_t owner,
                                                         pid_t root_of, Spender* payer) {
  auto opened = open_jit_file(path, owner, root_of);
  if (const auto* failure = std::get_if<JitMapFailure>(&opened))
    return *failure;
  JitMapFile map(std::move(std::get<RegularFile>(opened).fd), payer);
  map.refresh();
  return map;
}

bool JitMapFile::refresh(const OnCodeChange& on_change) {
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0)
    return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  is_cut_ = size > kMaxFileBytes;
  if (size < read_bytes_) {
    on_change(0, std::numeric_limits<std::uint64_t>::max());
    map_.clear();
    line_.clear();
    line_is_too_long_ = false;
    read_bytes_ = 0;
  } else if (std::min(size, kMaxFileBytes) == read_bytes_) {
    return false;
  }
  read_to(std::min(size, kMaxFileBytes), on_change);
  return true;
}

/// A last line without a newline becomes an entry at once.  When the program
/// appends the rest, the whole line becomes a newer entry and replaces it.
void JitMapFile::read_to(std::uint64_t size_bytes, const OnCodeChange& on_change) {
  std::string buffer;
  while (read_bytes_ < size_bytes) {
    constexpr std::uint64_t kBlockBytes = 256 * 1024;
    constexpr std::size_t kTurnsOfBlock = 64;
    if (payer_ != nullptr && !payer_->may_go_on(kTurnsOfBlock)) {
      is_cut_ = true;
      break;
    }
    buffer.resize(static_cast<std::size_t>(std::min(kBlockBytes, size_bytes - read_bytes_)));
    const std::size_t n = read_at(fd_, read_bytes_, std::as_writable_bytes(std::span(buffer)));
    if (n == 0)
      break;
    read_bytes_ += n;
    add_lines(std::string_view(buffer).substr(0, n), on_change);
  }
  if (!line_.empty() && !line_is_too_long_ && map_.add_unfinished_line(line_))
    on_change(map_.newest().first, map_.newest().second);
}

void JitMapFile::add_lines(std::string_view text, const OnCodeChange& on_change) {
  while (!text.empty()) {
    const std::size_t eol = text.find('\n');
    const std::string_view part = text.substr(0, eol);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    line_is_too_long_ = line_is_too_long_ || line_.size() + part.size() > JitMap::kMaxLineBytes;
    if (!line_is_too_long_)
      line_ += part;
    if (eol == std::string_view::npos)
      return;
    if (map_.add_line(line_is_too_long_ ? std::string_view() : std::string_view(line_)))
      on_change(map_.newest().first, map_.newest().second);
    line_.clear();
    line_is_too_long_ = false;
  }
}

}  // namespace pe::names
