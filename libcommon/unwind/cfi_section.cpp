// SPDX-License-Identifier: MIT
#include "unwind/cfi_section.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "elf/compressed.h"

namespace pe::unwind {
namespace {

constexpr std::uint32_t kDwarf64Escape = 0xffffffff;
constexpr std::size_t kMaxCieProgramBytes = 4096;  // common ones have 2 to 6
constexpr std::size_t kMaxAugmentationBytes = 16;
constexpr std::size_t kSearchTableEntryBytes = 8;
constexpr std::uint8_t kSearchTableEncoding = DW_EH_PE_datarel | DW_EH_PE_sdata4;

template <typename T>
T load(const std::vector<std::byte>& bytes, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The string at the start, if its NUL comes soon enough.
std::optional<std::string_view> take_augmentation(ByteReader& in) noexcept {
  const Bytes left = in.left();
  ByteReader window(left.first(std::min(left.size(), kMaxAugmentationBytes + 1)));
  const auto text = window.take_string();
  if (!text || !in.skip(text->size() + 1))
    return std::nullopt;
  return text;
}

/// The register of the return address.
std::optional<std::uint64_t> take_register(ByteReader& in, std::uint8_t version) noexcept {
  if (version != 1)
    return read_uleb128(in);
  const auto number = in.take<std::uint8_t>();
  return number ? std::optional<std::uint64_t>(*number) : std::nullopt;
}

/// What 'z' and the letters behind it announce.  False if it cannot be understood.
bool read_augmentation(AddressedReader& in, std::string_view letters, Cie& cie) noexcept {
  if (letters.empty())
    return true;
  if (letters.front() != 'z')
    return false;  // "eh" of g++ 2, and nothing since
  const auto size = read_uleb128(in);
  auto data = size ? in.take_part(*size) : std::nullopt;
  if (!data)
    return false;
  cie.has_augmentation_data = true;
  for (const char letter : letters.substr(1)) {
    std::optional<std::uint8_t> encoding = 0;
    if (letter == 'R' || letter == 'L' || letter == 'P')
      encoding = data->take<std::uint8_t>();
    if (!encoding)
      return false;
    if (letter == 'R')
      cie.pointer_encoding = *encoding;
    else if (letter == 'P' && !skip_pointer(*data, *encoding))
      return false;
    else if (letter == 'S')
      cie.is_signal_frame = true;
    else if (std::string_view("LPB").find(letter) == std::string_view::npos)
      break;  // unknown: what follows cannot be told apart, but 'z' has said where it ends
  }
  return true;
}

/// What .eh_frame_hdr says before its table.
struct EhFrameHeader {
  std::optional<std::uint64_t> frames_svma;  ///< where .eh_frame begins
  std::uint8_t count_encoding, table_encoding;
  AddressedReader table;  ///< the number of its entries first
};

std::optional<EhFrameHeader> read_eh_frame_header(const elf::SectionBytes& header) noexcept {
  AddressedReader in(header.bytes, header.svma);
  const auto version = in.take<std::uint8_t>();
  const auto frames_encoding = in.take<std::uint8_t>();
  const auto count_encoding = in.take<std::uint8_t>();
  const auto table_encoding = in.take<std::uint8_t>();
  if (version != 1 || !table_encoding)
    return std::nullopt;
  AddressedReader pointer = in;
  if (!skip_pointer(in, *frames_encoding))
    return std::nullopt;
  return EhFrameHeader{read_pointer(pointer, *frames_encoding, header.svma), *count_encoding,
                       *table_encoding, in};
}

std::optional<elf::SectionBytes> header_by_segment(const elf::Image& image) {
  const auto& segment = image.eh_frame_header();
  return segment ? image.loaded_bytes(segment->svma, segment->file_bytes) : std::nullopt;
}

/// Up to the end of its segment: the entries themselves say where they end.
std::optional<elf::SectionBytes> frames_by_header(const elf::Image& image,
                                                  const std::optional<elf::SectionBytes>& header) {
  const auto start = header ? read_eh_frame_header(*header) : std::nullopt;
  return start && start->frames_svma
             ? image.loaded_bytes(*start->frames_svma, CfiSection::kMaxFramesBytes)
             : std::nullopt;
}

}  // namespace

std::vector<CfiSection> CfiSection::all_of(const elf::Image& image) {
  std::vector<CfiSection> sections;
  const bool is_named = image.section(".eh_frame") != nullptr;
  auto header = is_named ? image.section_bytes(".eh_frame_hdr") : header_by_segment(image);
  auto frames = is_named ? image.section_bytes(".eh_frame") : frames_by_header(image, header);
  if (frames)
    sections.emplace_back(CfiFormat::kEhFrame, std::move(*frames), std::move(header));
  const elf::Section* debug = image.section(".debug_frame");
  auto content =
      debug != nullptr ? elf::read_uncompressed(image, *debug, kMaxFramesBytes) : std::nullopt;
  if (content)
    sections.emplace_back(CfiFormat::kDebugFrame, elf::SectionBytes{std::move(*content), 0});
  return sections;
}

CfiSection::CfiSection(CfiFormat format, elf::SectionBytes section,
                       std::optional<elf::SectionBytes> header)
    : format_(format), section_(std::move(section)) {
  if (header)
    find_search_table(*header);
  if (search_table_.empty())
    scan();
}

void CfiSection::find_search_table(const elf::SectionBytes& header) {
  data_svma_ = header.svma;
  auto start = read_eh_frame_header(header);
  if (!start || start->table_encoding != kSearchTableEncoding)
    return;
  AddressedReader& in = start->table;
  const auto count = read_pointer(in, start->count_encoding, header.svma);
  if (!count)
    return;
  const auto entries = std::min<std::uint64_t>(*count, in.left().size() / kSearchTableEntryBytes);
  const Bytes table = in.left().first(static_cast<std::size_t>(entries) * kSearchTableEntryBytes);
  search_table_.assign(table.begin(), table.end());
}

AddressedReader CfiSection::reader_at(std::uint64_t offset) const noexcept {
  const Bytes all(section_.bytes);
  const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(offset, all.size()));
  return {all.subspan(from), section_.svma + from};
}

std::optional<CfiSection::Entry> CfiSection::entry_at(std::uint64_t offset) const noexcept {
  AddressedReader in = reader_at(offset);
  const auto short_length = in.take<std::uint32_t>();
  if (!short_length || *short_length == 0)
    return std::nullopt;
  const bool is_dwarf64 = *short_length == kDwarf64Escape;
  const auto length =
      is_dwarf64 ? in.take<std::uint64_t>() : std::optional<std::uint64_t>(*short_length);
  auto body = length ? in.take_part(*length) : std::nullopt;
  if (!body)
    return std::nullopt;
  const std::uint64_t id_offset = body->here() - section_.svma;
  // In .eh_frame the id has four bytes whatever the length has (LSB 10.6.1.1).
  std::optional<std::uint64_t> id;
  if (is_dwarf64 && format_ == CfiFormat::kDebugFrame)
    id = body->take<std::uint64_t>();
  else
    id = body->take<std::uint32_t>();
  if (!id)
    return std::nullopt;
  return Entry{offset, id_offset, *id, is_dwarf64, *body};
}

bool CfiSection::is_cie(const Entry& entry) const noexcept {
  if (format_ == CfiFormat::kEhFrame)
    return entry.id == 0;
  return entry.id == (entry.is_dwarf64 ? std::numeric_limits<std::uint64_t>::max() : 0xffffffffU);
}

std::uint64_t CfiSection::cie_offset(const Entry& fde) const noexcept {
  // May wrap, and then lies outside the section.
  return format_ == CfiFormat::kEhFrame ? fde.id_offset - fde.id : fde.id;
}

std::optional<Cie> CfiSection::cie_at(std::uint64_t offset) const noexcept {
  auto entry = entry_at(offset);
  if (!entry || !is_cie(*entry))
    return std::nullopt;
  AddressedReader& in = entry->body;
  const auto version = in.take<std::uint8_t>();
  const auto augmentation = take_augmentation(in);
  if (!version || !augmentation || (*version != 1 && *version != 3 && *version != 4))
    return std::nullopt;
  if (*version == 4) {
    const auto address_bytes = in.take<std::uint8_t>();
    const auto segment_bytes = in.take<std::uint8_t>();
    if (address_bytes != 8 || segment_bytes != 0)
      return std::nullopt;
  }
  const auto code_alignment = read_uleb128(in);
  const auto data_alignment = read_sleb128(in);
  const auto return_register = take_register(in, *version);
  if (!code_alignment || !data_alignment || !return_register)
    return std::nullopt;
  Cie cie{.code_alignment = *code_alignment,
          .data_alignment = *data_alignment,
          .return_address_register = *return_register,
          .pointer_encoding = DW_EH_PE_absptr,
          .has_augmentation_data = false,
          .is_signal_frame = false,
          .instructions = {}};
  if (!read_augmentation(in, *augmentation, cie) || in.left().size() > kMaxCieProgramBytes)
    return std::nullopt;
  cie.instructions = in.left();
  return cie;
}

std::optional<Fde> CfiSection::parse_fde(const Entry& entry, const Cie& cie) const noexcept {
  AddressedReader in = entry.body;
  const auto start = read_pointer(in, cie.pointer_encoding, data_svma_);
  const auto bytes = read_pointer(in, cie.pointer_encoding & kPointerFormatMask, 0);
  if (!start || !bytes || *bytes == 0 ||
      *bytes > std::numeric_limits<std::uint64_t>::max() - *start)
    return std::nullopt;
  if (cie.has_augmentation_data) {
    const auto size = read_uleb128(in);
    if (!size || !in.skip(*size))
      return std::nullopt;
  }
  if (in.left().size() > kMaxProgramBytes)
    return std::nullopt;
  return Fde{cie, *start, *bytes, in};
}

/// A linker that drops a function may leave its FDE at 0 or with no bytes; those never cover an
/// address that a program runs at.
void CfiSection::scan() {
  std::optional<Cie> cie;
  std::uint64_t known_cie = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t offset = 0;
  while (const auto entry = entry_at(offset)) {
    const std::uint64_t next = entry->body.here() + entry->body.left().size() - section_.svma;
    if (!is_cie(*entry)) {
      if (cie_offset(*entry) != known_cie) {
        known_cie = cie_offset(*entry);
        cie = cie_at(known_cie);
      }
      if (const auto fde = cie ? parse_fde(*entry, *cie) : std::nullopt)
        scanned_.push_back({fde->start_svma, offset});
    }
    offset = next;
  }
  std::stable_sort(scanned_.begin(), scanned_.end(), [](const IndexEntry& a, const IndexEntry& b) {
    return a.start_svma < b.start_svma;
  });
  scanned_.shrink_to_fit();
}

std::size_t CfiSection::fde_count() const noexcept {
  return has_search_table() ? search_table_.size() / kSearchTableEntryBytes : scanned_.size();
}

std::optional<std::size_t> CfiSection::find(std::uint64_t svma) const noexcept {
  std::size_t low = 0;
  std::size_t high = fde_count();
  const auto relative = static_cast<std::int64_t>(svma - data_svma_);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const bool starts_at_or_before =
        has_search_table()
            ? load<std::int32_t>(search_table_, middle * kSearchTableEntryBytes) <= relative
            : scanned_[middle].start_svma <= svma;
    if (starts_at_or_before)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? std::nullopt : std::optional(low - 1);
}

std::optional<Fde> CfiSection::fde(std::size_t number) const noexcept {
  std::uint64_t offset = 0;
  if (has_search_table()) {
    const auto relative = load<std::int32_t>(search_table_, number * kSearchTableEntryBytes + 4);
    offset = data_svma_ + static_cast<std::uint64_t>(relative) - section_.svma;
  } else {
    offset = scanned_[number].offset;
  }
  const auto entry = entry_at(offset);
  if (!entry || is_cie(*entry))
    return std::nullopt;
  const auto cie = cie_at(cie_offset(*entry));
  return cie ? parse_fde(*entry, *cie) : std::nullopt;
}

}  // namespace pe::unwind
