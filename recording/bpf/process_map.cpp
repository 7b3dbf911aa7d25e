// SPDX-License-Identifier: MIT
#include "recording/bpf/process_map.h"

#include <algorithm>
#include <limits>

#include "languages/registry.h"

namespace pe::unwind {
namespace {

bool has_table(const Mapping& mapping) noexcept { return mapping.index < PE_OF_RUNTIME; }

class Builder {
 public:
  Builder(std::uint32_t pid, PackedImages& images, bool has_runtime)
      : pid_(pid), images_(images), of_anonymous_(has_runtime ? PE_OF_RUNTIME : PE_NO_TABLE) {}

  void add(const stream::Mapping& mapping);
  ProcessMap take();

 private:
  struct Placed {
    Mapping mapping;
    std::uint64_t place;  ///< as stream::Mapping::place: larger is newer
  };

  void add_file(const stream::Mapping& mapping, const PackedImage& image);
  void add_packed(const stream::Mapping& mapping, const PackedImage& image);
  void add_plain(std::uint64_t start, std::uint64_t end, std::uint32_t index, std::uint64_t place);

  std::uint32_t pid_;
  PackedImages& images_;
  std::uint32_t of_anonymous_;  ///< Mapping::index of code without a file
  std::vector<Placed> placed_;
  std::size_t left_out_ = 0;
};

/// Merges a mapping with the one before if it only continues that.
void Builder::add_plain(std::uint64_t start, std::uint64_t end, std::uint32_t index,
                        std::uint64_t place) {
  if (start >= end)
    return;
  if (!placed_.empty() && placed_.back().mapping.index == index &&
      placed_.back().mapping.end == start) {
    placed_.back().mapping.end = end;
    placed_.back().place = std::max(placed_.back().place, place);
    return;
  }
  placed_.push_back(
      {{.start = start, .end = end, .base = start, .index = index, .rows = 0}, place});
}

void Builder::add(const stream::Mapping& mapping) {
  if (mapping.file->is_anonymous()) {
    add_plain(mapping.start, mapping.end, of_anonymous_, mapping.place);
    return;
  }
  const PackedImage& image = images_.of(mapping, pid_);
  const auto svma = image.of_runtime.end > 0
                        ? objects::svma_of_code_mapping(image.segments, mapping.file_offset)
                        : std::nullopt;
  // A part of the file may be a runtime's, as anonymous code is.
  const auto place_of = [&](std::uint64_t part) {
    const std::uint64_t bytes = mapping.end - mapping.start;
    return mapping.start + (svma && part > *svma ? std::min(part - *svma, bytes) : 0);
  };
  const std::uint64_t start = place_of(image.of_runtime.start);
  const std::uint64_t end = place_of(image.of_runtime.end);
  if (start >= end)
    return add_file(mapping, image);
  stream::Mapping part = mapping;
  part.end = start;
  if (part.start < part.end)
    add_file(part, image);
  add_plain(start, end, of_anonymous_, mapping.place);
  part = mapping;
  part.start = end;
  part.file_offset += end - mapping.start;
  if (part.start < part.end)
    add_file(part, image);
}

void Builder::add_file(const stream::Mapping& mapping, const PackedImage& image) {
  switch (image.kind) {
    case PackedImage::Kind::kWithoutRules:
      add_plain(mapping.start, mapping.end, PE_NO_TABLE, mapping.place);
      break;
    case PackedImage::Kind::kPacked:
      add_packed(mapping, image);
      break;
    case PackedImage::Kind::kLeftOut:
      ++left_out_;
      break;
  }
}

/// Adds the part that has an index, and the parts of the same file before and after it.
void Builder::add_packed(const stream::Mapping& mapping, const PackedImage& image) {
  const auto svma = objects::svma_of_code_mapping(image.segments, mapping.file_offset);
  if (!svma) {
    add_plain(mapping.start, mapping.end, PE_NO_TABLE, mapping.place);
    return;
  }
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - *svma;
  const std::uint64_t end_svma = *svma + std::min(room, mapping.end - mapping.start);
  const std::uint64_t from = std::clamp(image.range.start_svma, *svma, end_svma);
  const std::uint64_t to = std::clamp(image.range.end_svma, from, end_svma);
  constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockShift) - 1;
  const std::uint64_t in_block = (from - image.range.start_svma) & kBlockMask;
  const std::uint64_t start = mapping.start + (from - *svma);
  if (from == to || start < in_block) {
    add_plain(mapping.start, mapping.end, PE_NO_ROWS, mapping.place);
    return;
  }
  const std::uint64_t end = start + (to - from);
  const auto block = static_cast<std::uint32_t>((from - image.range.start_svma) >> kBlockShift);
  add_plain(mapping.start, start, PE_NO_ROWS, mapping.place);
  placed_.push_back({{.start = start,
                      .end = end,
                      .base = start - in_block,
                      .index = image.index + block,
                      .rows = image.rows},
                     mapping.place});
  add_plain(end, mapping.end, PE_NO_ROWS, mapping.place);
}

ProcessMap Builder::take() {
  constexpr std::size_t kMost = kMaxMappings;
  if (placed_.size() > kMost) {
    const auto end = placed_.begin() + static_cast<std::ptrdiff_t>(kMost);
    std::nth_element(placed_.begin(), end, placed_.end(), [](const Placed& a, const Placed& b) {
      return has_table(a.mapping) != has_table(b.mapping) ? has_table(a.mapping)
                                                          : a.place > b.place;
    });
    left_out_ += placed_.size() - kMost;
    placed_.erase(end, placed_.end());
    std::sort(placed_.begin(), placed_.end(),
              [](const Placed& a, const Placed& b) { return a.mapping.start < b.mapping.start; });
  }
  ProcessMap map{.left_out = left_out_};
  map.mappings.reserve(placed_.size());
  for (const Placed& placed : placed_)
    map.mappings.push_back(placed.mapping);
  return map;
}

}  // namespace

ProcessMap map_of(const stream::AddressSpace& space, std::uint32_t pid, PackedImages& images) {
  const auto is_of_runtime = [&](const stream::Mapping& mapping) {
    const languages::Language* const machine = languages::machine_of(mapping.file->path);
    return machine != nullptr &&
           (!machine->has_embedded_code || images.of(mapping, pid).of_runtime.end > 0);
  };
  const bool has_runtime = std::ranges::any_of(
      space.all(), [&](const auto& item) { return is_of_runtime(item.second); });
  Builder builder(pid, images, has_runtime);
  for (const auto& [start, mapping] : space.all())
    builder.add(mapping);
  return builder.take();
}

}  // namespace pe::unwind
