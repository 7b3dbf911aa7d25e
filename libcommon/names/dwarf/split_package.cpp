// SPDX-License-Identifier: MIT
#include "names/dwarf/split_package.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "objects/compressed.h"

namespace pe::names {
namespace {

enum Column : std::uint32_t { kInfo = 1, kAbbrev = 3, kStrOffsets = 6, kRnglists = 8 };

constexpr std::uint32_t kHeaderBytes = 16;
constexpr std::string_view kNames[] = {".debug_info.dwo", ".debug_abbrev.dwo",
                                       ".debug_str_offsets.dwo", ".debug_rnglists.dwo"};

std::uint32_t u32_at(Bytes bytes, std::uint64_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t u64_at(Bytes bytes, std::uint64_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<std::byte> whole(const objects::Image& image, std::string_view name,
                             std::uint64_t limit_bytes) {
  const objects::Section* section = image.section(name);
  return section == nullptr ? std::vector<std::byte>{}
                            : objects::read_uncompressed(image, *section, limit_bytes)
                                  .value_or(std::vector<std::byte>{});
}

}  // namespace

SplitPackage::SplitPackage(objects::Image image, std::uint64_t limit_bytes)
    : image_(std::move(image)) {
  index_ = whole(image_, ".debug_cu_index", limit_bytes);
  strings_ = whole(image_, ".debug_str.dwo", limit_bytes - index_.size());
  std::uint64_t left = limit_bytes - index_.size() - strings_.size();
  for (const std::string_view name : kNames) {
    const objects::Section* section = image_.section(name);
    if (section == nullptr || !objects::is_compressed(*section))
      continue;
    const auto& content = uncompressed_[name] = whole(image_, name, left);
    left -= content.size();
  }
  read_header();
}

void SplitPackage::read_header() {
  if (index_.size() < kHeaderBytes)
    return;
  constexpr std::uint32_t kVersionMask = 0xffff;  // padding follows it in version 5
  version_ = u32_at(index_, 0) & kVersionMask;
  columns_ = u32_at(index_, 4);
  units_ = u32_at(index_, 8);
  const std::uint32_t slots = u32_at(index_, 12);
  constexpr std::uint32_t kMaxColumns = 64;
  const std::uint64_t cells = std::uint64_t{columns_} * units_;
  const std::uint64_t needed =
      kHeaderBytes + std::uint64_t{slots} * 12 + std::uint64_t{columns_} * 4 + cells * 8;
  const bool is_power_of_two = slots != 0 && (slots & (slots - 1)) == 0;
  if ((version_ == 2 || version_ == 5) && columns_ <= kMaxColumns && is_power_of_two &&
      needed <= index_.size())
    slots_ = slots;
}

std::optional<std::uint32_t> SplitPackage::row_of(std::uint64_t unit_id) const {
  if (slots_ == 0)
    return std::nullopt;
  const std::uint64_t mask = slots_ - 1;
  const std::uint64_t step = ((unit_id >> 32) & mask) | 1;
  std::uint64_t slot = unit_id & mask;
  for (std::uint32_t tries = 0; tries < slots_; ++tries, slot = (slot + step) & mask) {
    const std::uint32_t row = u32_at(index_, kHeaderBytes + std::uint64_t{slots_} * 8 + slot * 4);
    if (row == 0)
      return std::nullopt;
    if (u64_at(index_, kHeaderBytes + slot * 8) == unit_id)
      return row <= units_ ? std::optional(row - 1) : std::nullopt;
  }
  return std::nullopt;
}

SplitPackage::Part SplitPackage::part(std::uint32_t row, std::uint32_t wanted) const {
  const std::uint64_t kinds = kHeaderBytes + std::uint64_t{slots_} * 12;
  const std::uint64_t offsets = kinds + std::uint64_t{columns_} * 4;
  const std::uint64_t sizes = offsets + std::uint64_t{columns_} * units_ * 4;
  for (std::uint64_t column = 0; column < columns_; ++column)
    if (u32_at(index_, kinds + column * 4) == wanted) {
      const std::uint64_t cell = (std::uint64_t{row} * columns_ + column) * 4;
      return {u32_at(index_, offsets + cell), u32_at(index_, sizes + cell)};
    }
  return {0, 0};
}

std::optional<std::vector<std::byte>> SplitPackage::read(std::string_view name, Part part,
                                                         std::uint64_t limit_bytes) const {
  if (part.bytes == 0)
    return std::vector<std::byte>{};
  if (part.bytes > limit_bytes)
    return std::nullopt;
  if (const auto known = uncompressed_.find(name); known != uncompressed_.end()) {
    const Bytes content = known->second;
    if (part.offset > content.size() || part.bytes > content.size() - part.offset)
      return std::nullopt;
    const Bytes piece = content.subspan(part.offset, part.bytes);
    return std::vector<std::byte>(piece.begin(), piece.end());
  }
  const objects::Section* section = image_.section(name);
  if (section == nullptr || part.offset > section->bytes ||
      part.bytes > section->bytes - part.offset || section->file_offset > image_.size_bytes() ||
      section->bytes > image_.size_bytes() - section->file_offset)
    return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(part.bytes));
  return image_.read_at(section->file_offset + part.offset, bytes) ? std::optional(std::move(bytes))
                                                                   : std::nullopt;
}

std::optional<SplitSections> SplitPackage::find(std::uint64_t unit_id,
                                                std::uint64_t limit_bytes) const {
  const auto row = row_of(unit_id);
  if (!row)
    return std::nullopt;
  SplitSections unit;
  std::uint64_t left = limit_bytes;
  const auto fill = [&](std::vector<std::byte>& into, std::string_view name, Column column) {
    auto bytes = read(name, part(*row, column), left);
    if (!bytes)
      return false;
    left -= bytes->size();
    into = std::move(*bytes);
    return true;
  };
  // Column 8 has another meaning in version 2, which has no range lists.
  const bool is_complete = fill(unit.info, kNames[0], kInfo) &&
                           fill(unit.abbrev, kNames[1], kAbbrev) &&
                           fill(unit.str_offsets, kNames[2], kStrOffsets) &&
                           (version_ == 2 || fill(unit.rnglists, kNames[3], kRnglists)) &&
                           compact_strings(unit, strings_, version_, left);
  return is_complete ? std::optional(std::move(unit)) : std::nullopt;
}

bool compact_strings(SplitSections& sections, Bytes strings, unsigned version,
                     std::uint64_t limit_bytes) {
  constexpr std::uint32_t kIs64Bit =
      0xffffffff;  // this length marks 64-bit DWARF, which is unsupported
  std::size_t at = 0;
  if (version >= 5) {  // u32 length, u16 version, u16 padding
    constexpr std::size_t kOffsetsHeaderBytes = 8;
    if (sections.str_offsets.size() < kOffsetsHeaderBytes)
      return sections.str_offsets.empty();
    if (u32_at(sections.str_offsets, 0) == kIs64Bit)
      return false;
    at = kOffsetsHeaderBytes;
  }
  sections.str.assign(1, std::byte{0});
  std::unordered_map<std::uint32_t, std::uint32_t> places;  // old offset -> new offset
  for (; at + sizeof(std::uint32_t) <= sections.str_offsets.size(); at += sizeof(std::uint32_t)) {
    const std::uint32_t old = u32_at(sections.str_offsets, at);
    const auto [place, is_new] = places.try_emplace(old, 0);
    if (is_new && old < strings.size()) {
      const auto text = ByteReader(strings.subspan(old)).take_string();
      if (text && text->size() >= limit_bytes - std::min(limit_bytes, sections.str.size()))
        return false;
      if (text) {
        place->second = static_cast<std::uint32_t>(sections.str.size());
        const auto bytes = std::as_bytes(std::span(*text));
        sections.str.insert(sections.str.end(), bytes.begin(), bytes.end());
        sections.str.push_back(std::byte{0});
      }
    }
    std::memcpy(sections.str_offsets.data() + at, &place->second, sizeof place->second);
  }
  return true;
}

}  // namespace pe::names
