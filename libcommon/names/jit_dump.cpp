// SPDX-License-Identifier: MIT
#include "names/jit_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace pe::names {
namespace {

struct Header {
  std::uint32_t magic, version, size, machine, pad, pid;
  std::uint64_t time_ns, flags;
};
constexpr std::uint32_t kMagic = 0x4a695444;
constexpr std::uint64_t kOtherClock = 1;  // JITDUMP_FLAGS_ARCH_TIMESTAMP

enum RecordType : std::uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kUnwinding = 4 };

// Limits of the bytes read of a record.  The code at the end of a load is not read.
constexpr std::size_t kMaxJitNameBytes = 16UL * 1024;
constexpr std::size_t kMaxLoadBytes = 64 + kMaxJitNameBytes;
constexpr std::size_t kMaxDebugInfoBytes = 16UL * 1024 * 1024;
constexpr std::size_t kMaxUnwindingBytes = 1024UL * 1024;
constexpr std::size_t kWindowBytes = 128UL * 1024;

constexpr std::string_view kSameFile = "\xff";  // tools/perf/util/jitdump.h, debug_entry_next

struct CodePlace {
  std::uint32_t pid, tid;
  std::uint64_t vma;
};

}  // namespace

std::variant<JitDump, JitMapFailure> JitDump::open(const std::string& path, uid_t owner,
                                                   pid_t root_of, Spender* payer) {
  auto opened = open_jit_file(path, owner, root_of);
  if (const auto* failure = std::get_if<JitMapFailure>(&opened))
    return *failure;
  return check(std::move(std::get<RegularFile>(opened)), payer);
}

std::variant<JitDump, JitMapFailure> JitDump::check(RegularFile file, Spender* payer) {
  JitDump dump(std::move(file.fd), payer);
  dump.has_grown();
  dump.read_header();
  if (dump.is_damaged_)
    return JitMapFailure::kUnreadable;
  return dump;
}

/// Reads the header, once the program has written all of it.
void JitDump::read_header() {
  const auto header = ByteReader(bytes_at(0, sizeof(Header))).take<Header>();
  if (!header)
    return;
  is_damaged_ = header->magic != kMagic || header->size < sizeof(Header);
  bad_records_ += is_damaged_ ? 1 : 0;
  has_other_clock_ = (header->flags & kOtherClock) != 0;
  position_ = header->size;
}

/// Whether the file has grown beyond size_.  Updates size_.
bool JitDump::has_grown() {
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0)
    return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  is_cut_ = size > kMaxFileBytes;
  return std::exchange(size_, std::max(size_, std::min(size, kMaxFileBytes))) < size_;
}

/// Returns at most `size` bytes of the file, fewer at its end.  They are valid until the next call.
Bytes JitDump::bytes_at(std::uint64_t offset, std::size_t size) {
  const std::uint64_t window_end = window_at_ + window_.size();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - std::min(size_, offset)));
  if (offset < window_at_ || offset > window_end || size > window_end - offset) {
    const std::uint64_t left = size_ - std::min(size_, offset);
    window_.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(left, std::max(size, kWindowBytes))));
    window_.resize(read_at(fd_, offset, window_));
    window_at_ = offset;
  }
  const Bytes from_here = Bytes(window_).subspan(static_cast<std::size_t>(offset - window_at_));
  return from_here.first(std::min(size, from_here.size()));
}

/// Returns the prefix of the record at position_; nullopt until the file has the whole record.
std::optional<JitDump::Prefix> JitDump::next_prefix() {
  const auto prefix = ByteReader(bytes_at(position_, sizeof(Prefix))).take<Prefix>();
  if (!prefix)
    return std::nullopt;
  is_damaged_ = prefix->size < sizeof(Prefix);
  bad_records_ += is_damaged_ ? 1 : 0;
  return is_damaged_ || prefix->size > size_ - position_ ? std::nullopt : prefix;
}

void JitDump::advance(std::uint64_t time_ns, const OnCodeChange& on_change) {
  if (position_ == 0 && has_grown())
    read_header();
  if (has_other_clock_)
    time_ns = std::numeric_limits<std::uint64_t>::max();
  while (!is_damaged_ && position_ != 0) {
    if (!next_)
      next_ = next_prefix();
    if (!next_ && !is_damaged_ && has_grown())
      next_ = next_prefix();
    if (!next_ || next_->time_ns > time_ns)
      return;
    constexpr std::size_t kBytesOfTurn = 1024;
    if (payer_ != nullptr && !payer_->may_go_on(1 + next_->size / kBytesOfTurn)) {
      is_cut_ = true;
      return;
    }
    const Prefix due = *std::exchange(next_, std::nullopt);
    take_in(due, on_change);
    position_ += due.size;
  }
}

void JitDump::take_in(const Prefix& prefix, const OnCodeChange& on_change) {
  const std::size_t limit = prefix.type == kDebugInfo   ? kMaxDebugInfoBytes
                            : prefix.type == kUnwinding ? kMaxUnwindingBytes
                                                        : kMaxLoadBytes;
  ByteReader record(bytes_at(position_, std::min<std::size_t>(prefix.size, limit)));
  bool is_understood = record.skip(sizeof(Prefix));
  if (prefix.type == kLoad)
    is_understood = is_understood && load(record, on_change);
  else if (prefix.type == kMove)
    is_understood = is_understood && move(record, on_change);
  else if (prefix.type == kDebugInfo)
    is_understood = is_understood && take_lines(record);
  else if (prefix.type == kUnwinding)
    is_understood = is_understood && take_frames(record);
  bad_records_ += is_understood ? 0 : 1;
}

bool JitDump::load(ByteReader record, const OnCodeChange& on_change) {
  const auto place = record.take<CodePlace>();
  const auto code = record.take<std::uint64_t>();
  const auto size = record.take<std::uint64_t>();
  const auto index = record.take<std::uint64_t>();
  const auto name = record.take_string();
  auto lines = std::exchange(next_lines_, {});
  auto frames = std::exchange(next_frames_, {});
  if (!place || !code || !size || !index || !name)
    return false;
  if (*size == 0)
    return true;  // a function without code
  if (!map_.add(*code, *size, *name))
    return false;
  forget_lines(*code, *size);
  if (lines_of_next_load_ == *code && !lines.empty()) {
    line_count_ += lines.size();
    lines_[*code] = std::move(lines);
  }
  keep_frames(*code, *size, std::move(frames));
  on_change(*code, *code + *size);
  return true;
}

/// Moves the lines and frames of the code to its new place, and copies its name.  The old place
/// keeps the name until other code uses it: the moved code is no longer sampled there.
bool JitDump::move(ByteReader record, const OnCodeChange& on_change) {
  const auto place = record.take<CodePlace>();
  const auto from = record.take<std::uint64_t>();
  const auto to = record.take<std::uint64_t>();
  const auto size = record.take<std::uint64_t>();
  const auto moved = from ? map_.find(*from) : std::nullopt;
  if (!place || !from || !to || !size || !moved || moved->offset != 0 ||
      !map_.add(*to, *size, std::string(moved->name)))
    return false;
  std::vector<Line> lines;
  if (const auto old = lines_.find(*from); old != lines_.end()) {
    lines = std::move(old->second);
    line_count_ -= lines.size();
    lines_.erase(old);
  }
  forget_lines(*to, *size);
  for (Line& line : lines)
    line.avma += *to - *from;  // unsigned, so it may wrap around
  if (!lines.empty()) {
    line_count_ += lines.size();
    lines_[*to] = std::move(lines);
  }
  std::vector<std::byte> frames;
  if (const auto old = frames_.find(*from); old != frames_.end()) {
    frames = std::move(old->second.eh_frame);
    frames_bytes_ -= frames.size();
    frames_.erase(old);
  }
  keep_frames(*to, *size, std::move(frames));
  on_change(*to, *to + *size);
  return true;
}

bool JitDump::take_frames(ByteReader record) {
  next_frames_.clear();
  const auto bytes = record.take<std::uint64_t>();
  const auto header_bytes = record.take<std::uint64_t>();
  const auto mapped_bytes = record.take<std::uint64_t>();
  if (!bytes || !header_bytes || !mapped_bytes || *bytes < *header_bytes ||
      *bytes > record.left().size() || *bytes > kMaxFramesBytes - frames_bytes_ ||
      !map_.may_keep(static_cast<std::size_t>(*bytes)))
    return false;
  const Bytes eh_frame = record.left().first(static_cast<std::size_t>(*bytes - *header_bytes));
  next_frames_.assign(eh_frame.begin(), eh_frame.end());
  return true;
}

/// Replaces the frames of other code in this place; adds none if `eh_frame` is empty.
void JitDump::keep_frames(std::uint64_t start, std::uint64_t code_bytes,
                          std::vector<std::byte> eh_frame) {
  const auto begin = frames_.lower_bound(start);
  auto end = begin;
  for (; end != frames_.end() && end->first - start < code_bytes; ++end)
    frames_bytes_ -= end->second.eh_frame.size();
  frames_.erase(begin, end);
  if (eh_frame.empty())
    return;
  frames_bytes_ += eh_frame.size();
  frames_[start] = {code_bytes, std::move(eh_frame)};
}

std::optional<JitFrames> JitDump::frames_of(std::uint64_t avma) const {
  const auto symbol = map_.find(avma);
  const auto found = symbol ? frames_.find(symbol->start) : frames_.end();
  if (found == frames_.end())
    return std::nullopt;
  return JitFrames{found->first, found->second.code_bytes, Bytes(found->second.eh_frame)};
}

bool JitDump::take_lines(ByteReader record) {
  next_lines_.clear();
  const auto code = record.take<std::uint64_t>();
  const auto count = record.take<std::uint64_t>();
  constexpr std::size_t kLeastEntryBytes = 17;
  if (!code || !count || *count > record.left().size() / kLeastEntryBytes ||
      *count > kMaxLines - line_count_ ||
      !map_.may_keep(static_cast<std::size_t>(*count) * sizeof(Line)))
    return false;
  next_lines_.reserve(static_cast<std::size_t>(*count));
  std::string_view last_name;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto avma = record.take<std::uint64_t>();
    const auto line = record.take<std::uint32_t>();
    const auto column = record.take<std::uint32_t>();
    const auto name = record.take_string();
    if (name && *name != kSameFile)
      last_name = *name;
    const auto file = file_number(last_name);
    if (!avma || !line || !column || !name || !file) {
      next_lines_.clear();
      return false;
    }
    next_lines_.push_back({*avma, *line, *file});
  }
  std::stable_sort(next_lines_.begin(), next_lines_.end(),
                   [](const Line& a, const Line& b) { return a.avma < b.avma; });
  lines_of_next_load_ = *code;
  return true;
}

std::optional<std::uint32_t> JitDump::file_number(std::string_view name) {
  const auto known = file_numbers_.find(std::string(name));
  if (known != file_numbers_.end())
    return known->second;
  constexpr std::size_t kEntryBytes = 64;  // approximate overhead of a name
  if (name.size() + kEntryBytes > kMaxFilesBytes - files_bytes_)
    return std::nullopt;
  files_bytes_ += name.size() + kEntryBytes;
  const auto number = static_cast<std::uint32_t>(files_.size());
  files_.push_back(&file_numbers_.emplace(name, number).first->first);
  return number;
}

/// Removes the lines of code that other code has replaced.
void JitDump::forget_lines(std::uint64_t start, std::uint64_t size_bytes) {
  const auto begin = lines_.lower_bound(start);
  auto end = begin;
  for (; end != lines_.end() && end->first - start < size_bytes; ++end)
    line_count_ -= end->second.size();
  lines_.erase(begin, end);
}

std::optional<JitLine> JitDump::line_of(std::uint64_t avma) const {
  const auto symbol = map_.find(avma);
  const auto found = symbol ? lines_.find(symbol->start) : lines_.end();
  if (found == lines_.end())
    return std::nullopt;
  const std::vector<Line>& lines = found->second;
  const auto behind =
      std::upper_bound(lines.begin(), lines.end(), avma,
                       [](std::uint64_t a, const Line& line) { return a < line.avma; });
  if (behind == lines.begin())
    return std::nullopt;
  const Line& line = *std::prev(behind);
  return JitLine{*files_[line.file], line.line};
}

}  // namespace pe::names
