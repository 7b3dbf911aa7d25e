// SPDX-License-Identifier: MIT
#include "names/dwarf/split_units.h"

#include <dwarf.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <unordered_map>

#include "base/text.h"
#include "names/dwarf/die.h"
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

namespace {

/// Joins all sections of that name.  There may be several, because type units have their own.
std::vector<std::byte> sections_of(const objects::Image& image, std::string_view name,
                                   std::uint64_t& left_bytes) {
  std::vector<std::byte> all;
  for (const objects::Section& section : image.sections()) {
    if (section.name != name)
      continue;
    const auto bytes = objects::read_uncompressed(image, section, left_bytes);
    if (!bytes)
      continue;
    left_bytes -= bytes->size();
    all.insert(all.end(), bytes->begin(), bytes->end());
  }
  return all;
}

Bytes between(Bytes bytes, std::uint64_t begin, std::uint64_t end) {
  end = std::min<std::uint64_t>(end, bytes.size());
  return begin < end
             ? bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))
             : Bytes();
}

/// Copies addresses and subtracts `bias` from each.
template <typename Address>
std::vector<std::byte> rebased_addresses(Bytes bytes, std::uint64_t bias) {
  std::vector<std::byte> rebased(bytes.begin(), bytes.end());
  for (std::size_t at = 0; at + sizeof(Address) <= rebased.size(); at += sizeof(Address)) {
    Address address;
    std::memcpy(&address, rebased.data() + at, sizeof address);
    address = static_cast<Address>(address - bias);
    std::memcpy(rebased.data() + at, &address, sizeof address);
  }
  return rebased;
}

/// Copies range pairs.  Pairs relative to the unit stay.  A pair whose first number is the largest
/// possible sets the base of the pairs after it: `bias` is subtracted from that base.
template <typename Address>
std::vector<std::byte> rebased_ranges(Bytes bytes, std::uint64_t bias) {
  std::vector<std::byte> rebased(bytes.begin(), bytes.end());
  Address pair[2];
  for (std::size_t at = 0; at + sizeof pair <= rebased.size(); at += sizeof pair) {
    std::memcpy(pair, rebased.data() + at, sizeof pair);
    if (pair[0] != static_cast<Address>(-1))
      continue;
    pair[1] = static_cast<Address>(pair[1] - bias);
    std::memcpy(rebased.data() + at, pair, sizeof pair);
  }
  return rebased;
}

std::string_view text_of_unit(Dwarf_Die& unit, unsigned attribute, unsigned gnu_attribute) {
  const auto text = text_of(unit, attribute);
  return text.empty() && gnu_attribute != 0 ? text_of(unit, gnu_attribute) : text;
}

std::uint64_t number_of_unit(Dwarf_Die& unit, unsigned attribute, unsigned gnu_attribute) {
  const auto number = number_of(unit, attribute);
  return number == 0 ? number_of(unit, gnu_attribute) : number;
}

}  // namespace

void SkeletonParts::add(const Skeleton& skeleton) {
  addr_.push_back(skeleton.addr_base);
  ranges_.push_back(skeleton.ranges_base);
}

void SkeletonParts::sort() {
  std::sort(addr_.begin(), addr_.end());
  std::sort(ranges_.begin(), ranges_.end());
}

std::uint64_t SkeletonParts::next(const std::vector<std::uint64_t>& bases, std::uint64_t base) {
  const auto found = std::upper_bound(bases.begin(), bases.end(), base);
  return found == bases.end() ? ~std::uint64_t{0} : *found;
}

std::optional<Skeleton> skeleton_of(Dwarf_Die& unit) {
  Skeleton skeleton;
  skeleton.file = text_of_unit(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
  if (skeleton.file.empty())
    return std::nullopt;
  skeleton.folder = text_of_unit(unit, DW_AT_comp_dir, 0);
  Dwarf_Half version = 0;
  std::uint8_t address_bytes = 0;
  // A request for the split unit (the fifth argument) would make libdw open files.
  if (dwarf_cu_info(unit.cu, &version, nullptr, nullptr, nullptr, &skeleton.unit_id, &address_bytes,
                    nullptr) != 0)
    return std::nullopt;
  skeleton.version = version;
  skeleton.address_bytes = address_bytes;
  Dwarf_Addr low_pc = 0;
  skeleton.low_pc = dwarf_lowpc(&unit, &low_pc) == 0 ? low_pc : 0;
  skeleton.addr_base = number_of_unit(unit, DW_AT_addr_base, DW_AT_GNU_addr_base);
  skeleton.ranges_base = number_of(unit, DW_AT_GNU_ranges_base);
  return skeleton;
}

DebugImage SplitUnits::find(const Skeleton& skeleton, const DebugImage& program,
                            const SkeletonParts& parts) {
  auto sections = in_package(skeleton);
  if (!sections)
    sections = in_file(skeleton);
  const Bytes addresses =
      between(program.section(".debug_addr"), skeleton.addr_base, parts.addr(skeleton.addr_base));
  const Bytes ranges = skeleton.version < 5
                           ? between(program.section(".debug_ranges"), skeleton.ranges_base,
                                     parts.ranges(skeleton.ranges_base))
                           : Bytes();
  const bool is_64_bit = skeleton.address_bytes == sizeof(std::uint64_t);
  const std::uint64_t own = sections ? sections->bytes() : 0;
  if (!sections || own + addresses.size() + ranges.size() > left_bytes_)
    return {};
  left_bytes_ -= own + addresses.size() + ranges.size();
  DebugImageBuilder builder(program.machine, own + addresses.size() + ranges.size());
  builder.add(".debug_abbrev", sections->abbrev);
  builder.add(".debug_info", sections->info);
  builder.add(".debug_str", sections->str);
  builder.add(".debug_str_offsets", sections->str_offsets);
  if (!sections->rnglists.empty())
    builder.add(".debug_rnglists", sections->rnglists);
  builder.add(".debug_addr", is_64_bit
                                 ? rebased_addresses<std::uint64_t>(addresses, skeleton.low_pc)
                                 : rebased_addresses<std::uint32_t>(addresses, skeleton.low_pc));
  if (!ranges.empty())
    builder.add(".debug_ranges", is_64_bit
                                     ? rebased_ranges<std::uint64_t>(ranges, skeleton.low_pc)
                                     : rebased_ranges<std::uint32_t>(ranges, skeleton.low_pc));
  return builder.finish();
}

std::optional<SplitSections> SplitUnits::in_package(const Skeleton& skeleton) {
  if (!has_looked_for_package_) {
    has_looked_for_package_ = true;
    for (const std::string& path : paths_)
      if (auto image = package_ ? std::nullopt : finder_.open(path + ".dwp", owner_))
        package_.emplace(std::move(*image), left_bytes_);
  }
  return package_ ? package_->find(skeleton.unit_id, left_bytes_) : std::nullopt;
}

std::vector<std::string> SplitUnits::candidates(const Skeleton& skeleton) const {
  const std::string file(skeleton.file);
  if (file.size() + skeleton.folder.size() >= PATH_MAX)
    return {};
  std::vector<std::string> names;
  const auto& sysroot = finder_.search().sysroot;
  if (file.starts_with('/'))
    names.push_back(sysroot + file);
  else if (skeleton.folder.starts_with('/'))
    names.push_back(sysroot + std::string(skeleton.folder) + '/' + file);
  for (const std::string& path : paths_) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    if (!file.starts_with('/'))
      names.push_back(folder + file);
    names.push_back(folder + std::string(file_name(file)));
  }
  return names;
}

std::optional<SplitSections> SplitUnits::in_file(const Skeleton& skeleton) {
  for (const std::string& path : candidates(skeleton)) {
    const auto image = finder_.open(path, owner_);
    if (!image)
      continue;
    std::uint64_t left = left_bytes_;
    SplitSections sections;
    sections.info = sections_of(*image, ".debug_info.dwo", left);
    sections.abbrev = sections_of(*image, ".debug_abbrev.dwo", left);
    sections.str = sections_of(*image, ".debug_str.dwo", left);
    sections.str_offsets = sections_of(*image, ".debug_str_offsets.dwo", left);
    sections.rnglists = sections_of(*image, ".debug_rnglists.dwo", left);
    DebugImageBuilder builder(image->machine(), sections.info.size() + sections.abbrev.size());
    builder.add(".debug_abbrev", sections.abbrev);
    builder.add(".debug_info", sections.info);
    const DwarfHandle trial(builder.finish());
    if (split_unit(trial.get(), skeleton.unit_id))
      return sections;
    finder_.refuse(path, objects::DebugRefusal::kOtherBuildId);
  }
  return std::nullopt;
}

std::optional<Dwarf_Die> split_unit(Dwarf* dwarf, std::uint64_t unit_id) {
  Dwarf_Off at = 0;
  Dwarf_Off next = 0;
  std::size_t header_bytes = 0;
  while (dwarf != nullptr &&
         dwarf_nextcu(dwarf, at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
         next > at) {
    Dwarf_Die unit;
    std::uint64_t id = 0;
    if (dwarf_offdie(dwarf, at + header_bytes, &unit) != nullptr &&
        dwarf_tag(&unit) == DW_TAG_compile_unit &&
        dwarf_cu_info(unit.cu, nullptr, nullptr, nullptr, nullptr, &id, nullptr, nullptr) == 0 &&
        id == unit_id)
      return unit;
    at = next;
  }
  return std::nullopt;
}

}  // namespace pe::names
