// SPDX-License-Identifier: MIT
#include "recording/stream/moved_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "languages/registry.h"
#include "languages/runtimes.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPageMask = kPage - 1;

/// Calls `is_right` with each bias by which a line may be of a file with these segments, until it
/// returns true.  Returns whether it did.
template <typename IsRight>
bool any_bias(std::span<const objects::Segment> segments, const stream::MapsLine& line,
              IsRight&& is_right) {
  return std::ranges::any_of(segments, [&](const objects::Segment& segment) {
    const std::uint64_t first = segment.file_offset & ~kPageMask;
    const std::uint64_t past = line.file_offset - first;
    return segment.executable == line.executable && line.file_offset >= first &&
           past < segment.file_bytes + (segment.file_offset - first) &&
           is_right(line.start - (segment.svma - (segment.file_offset - line.file_offset)));
  });
}

bool is_anonymous_code(const stream::MapsLine& line) {
  return line.executable &&
         (line.path.empty() || stream::MappedFile{.path = std::string(line.path)}.is_anonymous());
}

bool is_same_file(const stream::MapsLine& a, const stream::MapsLine& b) {
  return a.inode != 0 && a.inode == b.inode && a.device_major == b.device_major &&
         a.device_minor == b.device_minor && a.path == b.path && a.path.starts_with('/');
}

void set_file(stream::MapsLine& line, const stream::MapsLine& file, std::string_view path,
              std::uint64_t file_offset) {
  line.path = path;
  line.inode = file.inode;
  line.device_major = file.device_major;
  line.device_minor = file.device_minor;
  line.file_offset = file_offset;
}

/// Counts the bytes of pages that are compared.
struct Compared {
  std::size_t read = 0;    ///< pages that could be read
  std::size_t bytes = 0;   ///< of pages without those of zeros
  std::size_t others = 0;  ///< of them: those that differ

  void add(std::span<const std::byte> memory, std::span<const std::byte> of_file) {
    ++read;
    if (std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0}; }))
      return;
    bytes += memory.size();
    for (std::size_t i = 0; i < memory.size(); ++i)
      others += memory[i] != of_file[i] ? 1 : 0;
  }
  [[nodiscard]] HoleCode result() const {
    constexpr std::size_t kMostOthers = 8;  // one in that many
    if (read == 0)
      return HoleCode::kText;
    if (bytes == 0)
      return HoleCode::kUnknown;
    return others * kMostOthers <= bytes ? HoleCode::kText : HoleCode::kOther;
  }
};

objects::OpenResult open_file(pid_t pid, const stream::MapsLine& line, std::string_view path) {
  const stream::MappedFile file{.path = stream::unescape_path(path), .inode = line.inode};
  const stream::Mapping mapping{line.start, line.end, line.file_offset, &file};
  return objects::open_mapped_image(pid, mapping, objects::FileMatch::kSameInode,
                                    /*cache=*/nullptr);
}

}  // namespace

std::optional<std::uint64_t> offset_of_text(std::span<const objects::Segment> segments,
                                            const Hole& hole) {
  std::optional<std::uint64_t> offset;
  any_bias(segments, hole.before, [&](std::uint64_t bias) {
    if (!any_bias(segments, hole.behind, [bias](std::uint64_t other) { return other == bias; }))
      return false;
    const std::uint64_t start = hole.start - bias, end = hole.end - bias;
    const auto text = std::ranges::find_if(segments, [&](const objects::Segment& segment) {
      const std::uint64_t last = segment.svma + segment.memory_bytes + kPageMask;
      return segment.executable && start < end && start >= (segment.svma & ~kPageMask) &&
             last >= segment.svma && end <= (last & ~kPageMask);
    });
    if (text != segments.end())
      offset = text->file_offset - (text->svma - start);
    return offset.has_value();
  });
  return offset;
}

HoleCode MovedText::examine(pid_t pid, Hole& hole) {
  if (const auto known = moved_.find(pid);
      known != moved_.end() && known->second.start == hole.start && known->second.end == hole.end &&
      known->second.file.inode == hole.before.inode) {
    hole.text_file_offset = known->second.text_file_offset;
    return HoleCode::kText;
  }
  Spender spender(budget_, static_cast<std::uint32_t>(pid));
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return HoleCode::kUnknown;
  auto opened = open_file(pid, hole.before, hole.before.path);
  auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return HoleCode::kUnknown;
  image->pay_by(spender);
  const auto offset = offset_of_text(image->segments(), hole);
  if (!offset)
    return HoleCode::kOther;
  hole.text_file_offset = *offset;
  const HoleCode code = compare(pid, *image, *offset, hole.start, hole.end);
  if (code == HoleCode::kText && !spender.has_lost())
    remember(pid, *image, hole);
  return spender.has_lost() ? HoleCode::kUnknown : code;
}

/// Compares the first page, the last, and some between.
HoleCode MovedText::compare(pid_t pid, const objects::Image& image, std::uint64_t file_offset,
                            std::uint64_t start, std::uint64_t end) const {
  constexpr std::uint64_t kMostPages = 16;
  const std::uint64_t pages = (end - start) / kPage;
  const std::uint64_t wanted = std::min(pages, kMostPages);
  Compared compared;
  std::array<std::byte, kPage> memory{}, of_file{};
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const std::uint64_t at = kPage * (i * (pages - 1) / std::max<std::uint64_t>(wanted - 1, 1));
    if (image.read_at(file_offset + at, of_file) &&
        read_(static_cast<std::uint32_t>(pid), start + at, memory) == memory.size())
      compared.add(memory, of_file);
  }
  return compared.result();
}

void MovedText::remember(pid_t pid, const objects::Image& image, const Hole& hole) {
  constexpr std::size_t kMostProcesses = 1024;
  if (moved_.size() >= kMostProcesses)
    moved_.clear();
  MovedFile& moved = moved_[pid];
  moved = {.start = hole.start,
           .end = hole.end,
           .text_file_offset = hole.text_file_offset,
           .file = hole.before,
           .path = std::string(hole.before.path)};
  moved.file.path = {};
  const auto* const machine = languages::machine_of(moved.path);
  if (machine == nullptr || !machine->has_embedded_code)
    return;
  const languages::EmbeddedCode code = languages::find_embedded_code(image);
  const std::uint64_t start = code.start & ~kPageMask;
  const auto offset = objects::file_offset_of_code(image.segments(), start);
  if (code.start >= code.end || !offset)
    return;
  moved.copied_bytes = (code.end - start + kPageMask) & ~kPageMask;
  moved.copied_file_offset = *offset;
}

const MovedFile* MovedText::copy_at(pid_t pid, std::uint64_t start, std::uint64_t end) {
  const auto found = moved_.find(pid);
  if (found == moved_.end() || end - start != found->second.copied_bytes)
    return nullptr;
  MovedFile& moved = found->second;
  if (moved.copy == start)
    return &moved;
  Spender spender(budget_, static_cast<std::uint32_t>(pid));
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return nullptr;
  auto opened = open_file(pid, moved.file, moved.path);
  auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return nullptr;
  image->pay_by(spender);
  if (compare(pid, *image, moved.copied_file_offset, start, end) != HoleCode::kText)
    return nullptr;
  moved.copy = start;
  return &moved;
}

HoleCode MovedText::examine(const stream::MmapRecord& map, const stream::AddressSpace& known) {
  const stream::Mapping* const first = known.find(map.start);
  const stream::Mapping* const last = known.find(map.start + map.size - 1);
  const bool is_anonymous = stream::MappedFile{.path = std::string(map.path)}.is_anonymous();
  if (!map.executable || !is_anonymous || first == nullptr || last == nullptr ||
      first->file != last->file || first->file->is_anonymous())
    return HoleCode::kUnknown;
  Spender spender(budget_, map.pid);
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return HoleCode::kUnknown;
  const auto pid = static_cast<pid_t>(map.pid);
  moved_.erase(pid);  // the memory is new
  HoleCode found = HoleCode::kUnknown;
  const LinesWithText::OnLine on_line = [&](const stream::MapsLine& line, HoleCode code) {
    if (line.executable && line.start <= map.start && map.start < line.end)
      found = code;
  };
  LinesWithText lines(this, pid, on_line);
  const auto text = stream::maps_of(pid);
  stream::for_each_mapping(text ? std::string_view(*text) : std::string_view(),
                           [&](const stream::MapsLine& line) { lines.take(line); });
  lines.finish();
  return found;
}

void LinesWithText::take(const stream::MapsLine& line) {
  if (is_anonymous_code(line) && (hole_.empty() || hole_.back().end == line.start)) {
    hole_.push_back(line);
    return;
  }
  pass_hole(&line);
  if (is_anonymous_code(line)) {
    before_.reset();
    hole_.push_back(line);
    return;
  }
  before_ = line;
  on_line_(line, HoleCode::kUnknown);
}

/// Passes on the lines of the hole; null: the last line is in it.
void LinesWithText::pass_hole(const stream::MapsLine* behind) {
  if (hole_.empty())
    return;
  HoleCode code = HoleCode::kOther;
  std::optional<Hole> hole;
  if (before_ && behind != nullptr && is_same_file(*before_, *behind)) {
    hole = Hole{.start = hole_.front().start,
                .end = hole_.back().end,
                .before = *before_,
                .behind = *behind};
    code = text_ != nullptr ? text_->examine(pid_, *hole) : HoleCode::kUnknown;
  }
  for (stream::MapsLine& line : hole_) {
    const MovedFile* const copy =
        !hole && text_ != nullptr ? text_->copy_at(pid_, line.start, line.end) : nullptr;
    if (copy != nullptr)
      set_file(line, copy->file, copy->path, copy->copied_file_offset);
    else if (code == HoleCode::kText)
      set_file(line, *before_, before_->path, hole->text_file_offset + (line.start - hole->start));
    else if (hole && code == HoleCode::kOther)
      line.path = stream::kNoMovedText;
    on_line_(line, code);
  }
  hole_.clear();
}

}  // namespace pe::recording
