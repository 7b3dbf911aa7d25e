// SPDX-License-Identifier: MIT
#include "unwind/cfi/cfi_section.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/sort_in_steps.h"
#include "objects/compressed.h"
#include "unwind/walk/go_frames.h"

namespace pe::unwind {
namespace {

std::optional<objects::SectionBytes> header_by_segment(const objects::Image& image) {
  const auto& segment = image.eh_frame_header();
  return segment ? image.loaded_bytes(segment->svma, segment->file_bytes) : std::nullopt;
}

/// Reads up to the end of the segment: the entries themselves mark where they end.
std::optional<objects::SectionBytes> frames_by_header(
    const objects::Image& image, const std::optional<objects::SectionBytes>& header) {
  const auto start = header ? read_eh_frame_header(header->bytes, header->svma) : std::nullopt;
  return start && start->frames_svma
             ? image.loaded_bytes(*start->frames_svma, CfiSection::kMaxFramesBytes)
             : std::nullopt;
}

/// Expanding is one step, of which 32 MiB take 40 ms.  Those of large programs in Go have 5 MiB.
std::uint64_t most_frames_bytes(const objects::Section& section) {
  constexpr std::uint64_t kMostExpanded = std::uint64_t{32} << 20;
  return objects::is_compressed(section) ? kMostExpanded : CfiSection::kMaxFramesBytes;
}

}  // namespace

std::vector<CfiSection> CfiSection::all_of(const objects::Image& image) {
  std::vector<CfiSection> sections;
  if (auto of_go = go_frames(image); !of_go.empty())
    sections.emplace_back(CfiFormat::kDebugFrame, objects::SectionBytes{std::move(of_go), 0},
                          std::nullopt, image.spender());
  const bool is_named = image.section(".eh_frame") != nullptr;
  auto header = is_named ? image.section_bytes(".eh_frame_hdr") : header_by_segment(image);
  auto frames = is_named ? image.section_bytes(".eh_frame") : frames_by_header(image, header);
  if (frames)
    sections.emplace_back(CfiFormat::kEhFrame, std::move(*frames), std::move(header),
                          image.spender());
  const objects::Section* debug = image.section(".debug_frame");
  auto content = debug != nullptr
                     ? objects::read_uncompressed(image, *debug, most_frames_bytes(*debug))
                     : std::nullopt;
  if (content)
    sections.emplace_back(CfiFormat::kDebugFrame, objects::SectionBytes{std::move(*content), 0},
                          std::nullopt, image.spender());
  return sections;
}

CfiSection::CfiSection(CfiFormat format, objects::SectionBytes section,
                       std::optional<objects::SectionBytes> header, Spender* spender)
    : format_(format), section_(std::move(section)) {
  if (header)
    find_search_table(*header);
  if (search_table_.empty())
    scan(spender);
}

void CfiSection::find_search_table(const objects::SectionBytes& header) {
  data_svma_ = header.svma;
  const auto read = read_eh_frame_header(header.bytes, header.svma);
  if (read)
    search_table_.assign(read->table.pairs().begin(), read->table.pairs().end());
}

/// A linker that drops a function may leave its FDE at 0 or with no bytes.  Such an FDE never
/// covers an address at which a program runs.
void CfiSection::scan(Spender* spender) {
  const CfiEntries all = entries();
  std::optional<Cie> cie;
  std::uint64_t known_cie = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t offset = 0;
  constexpr std::size_t kEntriesOfTurn = 64, kMostEntries = std::size_t{1} << 22;
  for (std::size_t i = 0; const auto entry = all.entry_at(offset); ++i) {
    if (scanned_.size() == kMostEntries ||
        (spender != nullptr && i % kEntriesOfTurn == 0 && !spender->may_go_on()))
      break;
    const std::uint64_t next = entry->body.here() + entry->body.left().size() - section_.svma;
    if (!all.is_cie(*entry)) {
      if (all.cie_offset(*entry) != known_cie) {
        known_cie = all.cie_offset(*entry);
        cie = all.cie_at(known_cie);
      }
      if (const auto fde = cie ? all.parse_fde(*entry, *cie) : std::nullopt)
        scanned_.push_back({fde->start_svma, offset});
    }
    offset = next;
  }
  const auto is_before = [](const IndexEntry& a, const IndexEntry& b) {
    return a.start_svma < b.start_svma;
  };
  if (!sort_in_steps(scanned_, is_before, paid_by(spender)))
    scanned_.clear();
  scanned_.shrink_to_fit();
}

std::size_t CfiSection::fde_count() const noexcept {
  return has_search_table() ? search_table().size() : scanned_.size();
}

std::optional<std::size_t> CfiSection::find(std::uint64_t svma) const noexcept {
  if (has_search_table())
    return search_table().find(svma);
  const auto after = std::upper_bound(
      scanned_.begin(), scanned_.end(), svma,
      [](std::uint64_t wanted, const IndexEntry& entry) { return wanted < entry.start_svma; });
  return after == scanned_.begin()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(after - scanned_.begin()) - 1);
}

std::optional<Fde> CfiSection::fde(std::size_t number) const noexcept {
  return entries().fde_at(has_search_table() ? search_table().fde_svma(number) - section_.svma
                                             : scanned_[number].offset);
}

}  // namespace pe::unwind
