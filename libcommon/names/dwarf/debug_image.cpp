// SPDX-License-Identifier: MIT
#include "names/dwarf/debug_image.h"

#include <elfutils/libdw.h>  // and with it the ELF structures

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "objects/compressed.h"

namespace pe::names {
namespace {

/// The sections that describe functions, inlined functions and lines.
constexpr std::string_view kWanted[] = {
    ".debug_abbrev", ".debug_addr", ".debug_info",     ".debug_line",        ".debug_line_str",
    ".debug_ranges", ".debug_str",  ".debug_rnglists", ".debug_str_offsets",
};

struct Wanted {
  std::vector<const objects::Section*> sections;
  std::uint64_t bytes = 0;  ///< together, uncompressed
};

/// Returns nullopt if the sections do not fit the limit, or the image has none of them.
std::optional<Wanted> find_wanted(const objects::Image& image, std::uint64_t limit_bytes) {
  Wanted wanted;
  for (const std::string_view name : kWanted) {
    const objects::Section* section = image.section(name);
    const auto bytes =
        section != nullptr ? objects::uncompressed_bytes(image, *section) : std::nullopt;
    if (!bytes)
      continue;
    if (*bytes > limit_bytes - wanted.bytes)
      return std::nullopt;
    wanted.bytes += *bytes;
    wanted.sections.push_back(section);
  }
  return wanted.bytes == 0 ? std::nullopt : std::optional(wanted);
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t at, std::span<const T> values) {
  std::memcpy(bytes.data() + at, values.data(), values.size_bytes());
}

}  // namespace

Bytes DebugImage::section(std::string_view name) const noexcept {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [name](const Place& place) { return place.name == name; });
  return found == sections.end() ? Bytes() : Bytes(bytes).subspan(found->offset, found->bytes);
}

DebugImageBuilder::DebugImageBuilder(std::uint16_t machine, std::uint64_t content_bytes) {
  constexpr std::uint64_t kMaxOverhead = 4096;  // headers, names and padding
  image_.machine = machine;
  image_.bytes.reserve(static_cast<std::size_t>(content_bytes + kMaxOverhead));
  image_.bytes.resize(sizeof(Elf64_Ehdr));
}

void DebugImageBuilder::add(std::string_view name, Bytes content) {
  std::vector<std::byte>& bytes = image_.bytes;
  align(16);
  image_.sections.push_back({std::string(name), bytes.size(), content.size()});
  bytes.insert(bytes.end(), content.begin(), content.end());
  bytes.resize(bytes.size() + kPaddingBytes);
}

void DebugImageBuilder::align(std::size_t alignment) {
  std::vector<std::byte>& bytes = image_.bytes;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

DebugImage DebugImageBuilder::finish() {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);  // no section has number 0
  headers.reserve(image_.sections.size() + 2);
  const auto add_header = [&](std::string_view name, std::uint64_t offset, std::uint64_t bytes) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_offset = offset;
    header.sh_size = bytes;
    header.sh_addralign = 1;
    headers.push_back(header);
    names.append(name).push_back('\0');
  };
  for (const auto& place : image_.sections)
    add_header(place.name, place.offset, place.bytes);
  add_header(".shstrtab", image_.bytes.size(), 0);
  headers.back().sh_type = SHT_STRTAB;
  headers.back().sh_size = names.size();
  std::size_t end = image_.bytes.size();
  image_.bytes.resize(end + names.size());
  put(image_.bytes, end, std::span<const char>(names));
  align(alignof(Elf64_Shdr));
  end = image_.bytes.size();
  image_.bytes.resize(end + headers.size() * sizeof(Elf64_Shdr) + kPaddingBytes);
  put(image_.bytes, end, std::span<const Elf64_Shdr>(headers));

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = image_.machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = end;
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  put(image_.bytes, 0, std::span<const Elf64_Ehdr>(&header, 1));
  return std::move(image_);
}

DebugImage make_debug_image(const objects::Image& image, std::uint64_t limit_bytes) {
  const auto wanted = find_wanted(image, limit_bytes);
  if (!wanted)
    return {};
  DebugImageBuilder builder(image.machine(), wanted->bytes);
  for (const objects::Section* section : wanted->sections)
    if (const auto content = objects::read_uncompressed(image, *section, limit_bytes))
      builder.add(section->name, *content);
  return builder.finish();
}

DwarfHandle::DwarfHandle(DebugImage image) : image_(std::move(image)) {
  if (image_.bytes.empty())
    return;
  elf_version(EV_CURRENT);
  elf_ =
      elf_memory(reinterpret_cast<char*>(image_.bytes.data()), image_.bytes.size() - kPaddingBytes);
  if (elf_ != nullptr)
    dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
}

DwarfHandle::~DwarfHandle() {
  dwarf_end(dwarf_);
  elf_end(elf_);
}

}  // namespace pe::names
