// SPDX-License-Identifier: MIT
#include "names/dwarf/split_units.h"

#include <dwarf.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/file_name.h"
#include "names/dwarf/die.h"
#include "objects/compressed.h"

namespace pe::names {
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
