// SPDX-License-Identifier: MIT
#include "dwarf/debug_image.h"

#include <elfutils/libdw.h>  // and with it the ELF structures

#include <cstring>
#include <optional>
#include <string>

#include "elf/compressed.h"

namespace pe::dwarf {
namespace {

/// Those that functions, inlined functions and lines are described by.
constexpr std::string_view kWanted[] = {
    ".debug_abbrev", ".debug_addr", ".debug_info",     ".debug_line",        ".debug_line_str",
    ".debug_ranges", ".debug_str",  ".debug_rnglists", ".debug_str_offsets",
};

class Builder {
  static constexpr std::size_t kMaxOverhead = 4096;  ///< headers, names and padding

 public:
  Builder(const elf::Image& image, std::uint64_t content_bytes) {
    header_.e_ident[EI_CLASS] = ELFCLASS64;
    header_.e_ident[EI_DATA] = ELFDATA2LSB;
    header_.e_ident[EI_VERSION] = EV_CURRENT;
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_type = image.type();
    header_.e_machine = image.machine();
    header_.e_version = EV_CURRENT;
    header_.e_ehsize = sizeof header_;
    header_.e_shentsize = sizeof(Elf64_Shdr);
    bytes_.reserve(content_bytes + kMaxOverhead);
    bytes_.resize(sizeof header_);
    sections_.emplace_back();  // none has number 0
  }

  void add(std::string_view name, std::span<const std::byte> content, std::uint32_t type) {
    constexpr std::size_t kAlignment = 16;
    bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_type = type;
    section.sh_offset = bytes_.size();
    section.sh_size = content.size();
    section.sh_addralign = 1;
    sections_.push_back(section);
    names_.append(name).push_back('\0');
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    bytes_.resize(bytes_.size() + kPaddingBytes);
  }

  std::vector<std::byte> finish() {
    const std::string names = names_ + ".shstrtab" + '\0';
    add(".shstrtab", std::as_bytes(std::span(names)), SHT_STRTAB);
    constexpr std::size_t kAlignment = alignof(Elf64_Shdr);
    bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
    header_.e_shoff = bytes_.size();
    header_.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header_.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    const auto table = std::as_bytes(std::span(sections_));
    bytes_.insert(bytes_.end(), table.begin(), table.end());
    bytes_.resize(bytes_.size() + kPaddingBytes);
    return std::move(bytes_);
  }

 private:
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::string names_ = std::string(1, '\0');
  std::vector<std::byte> bytes_;
};

struct Wanted {
  std::vector<const elf::Section*> sections;
  std::uint64_t bytes = 0;  ///< together, uncompressed
};

/// nullopt if they do not fit the limit, or there is nothing to begin with.
std::optional<Wanted> find_wanted(const elf::Image& image, std::uint64_t limit_bytes) {
  Wanted wanted;
  for (const std::string_view name : kWanted) {
    const elf::Section* section = image.section(name);
    const auto bytes = section != nullptr ? elf::uncompressed_bytes(image, *section) : std::nullopt;
    if (!bytes)
      continue;
    if (*bytes > limit_bytes - wanted.bytes)
      return std::nullopt;
    wanted.bytes += *bytes;
    wanted.sections.push_back(section);
  }
  if (image.type() == ET_REL || wanted.bytes == 0)  // whose addresses are not final
    return std::nullopt;
  return wanted;
}

}  // namespace

std::vector<std::byte> make_debug_image(const elf::Image& image, std::uint64_t limit_bytes) {
  const auto wanted = find_wanted(image, limit_bytes);
  if (!wanted)
    return {};
  Builder builder(image, wanted->bytes);
  for (const elf::Section* section : wanted->sections)
    if (const auto content = elf::read_uncompressed(image, *section, limit_bytes))
      builder.add(section->name, *content, SHT_PROGBITS);
  return builder.finish();
}

}  // namespace pe::dwarf
