// SPDX-License-Identifier: MIT
#include "languages/java/scopes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "languages/java/method.h"

namespace pe::languages {
namespace {

/// PcDesc: four integers of four bytes, of which the first two are the offset in the code, and that
/// in the stream.
constexpr std::uint64_t kPcDescBytes = 16;
struct PcDesc {
  std::int32_t code_offset;
  std::uint32_t stream_offset;
};
/// Three numbers of up to five bytes.
constexpr std::size_t kHeadBytes = 15;

/// Returns the first entry at or after an offset in the code; nullopt if none is, or a part is
/// unreadable.
std::optional<PcDesc> find_pc_desc(Memory& memory, const CodeBlob& blob, std::int64_t offset) {
  std::uint64_t low = 0;
  std::uint64_t left = (blob.pc_descs_end - blob.pc_descs) / kPcDescBytes;
  const std::uint64_t count = left;
  while (left > 0) {
    const std::uint64_t half = left / 2;
    const auto entry = memory.value<PcDesc>(blob.pc_descs + (low + half) * kPcDescBytes);
    if (!entry)
      return std::nullopt;
    if (entry->code_offset < offset) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return low < count ? memory.value<PcDesc>(blob.pc_descs + low * kPcDescBytes) : std::nullopt;
}

struct Head {
  std::uint32_t caller = 0;  ///< offset of its head in the stream; 0: none
  std::uint32_t method = 0;  ///< number among the metadata, from 1
  std::uint32_t bytecode = 0;
};

std::optional<Head> read_head(Memory& memory, const HotspotLayout& layout, const CodeBlob& blob,
                              std::uint32_t offset) {
  if (offset >= blob.scopes_end - blob.scopes)
    return std::nullopt;
  std::array<std::byte, kHeadBytes> bytes{};
  const auto part = std::span(bytes).first(
      std::min<std::uint64_t>(kHeadBytes, blob.scopes_end - blob.scopes - offset));
  if (!memory.read(blob.scopes + offset, part))
    return std::nullopt;
  CompressedReader reader(part, layout.compressed_excess);
  const auto caller = reader.number();
  const auto method = reader.number();
  const auto bytecode = reader.number();
  if (!caller || !method || !bytecode)
    return std::nullopt;
  return Head{*caller, *method, *bytecode};
}

}  // namespace

std::vector<Scope> scopes_at(Memory& memory, const HotspotLayout& layout, const CodeBlob& blob,
                             std::uint64_t avma) {
  std::vector<Scope> scopes;
  const auto place = find_pc_desc(memory, blob, static_cast<std::int64_t>(avma - blob.code_start));
  std::uint32_t offset = place ? place->stream_offset : 0;
  while (offset != 0 && scopes.size() < kMostScopes) {
    const auto head = read_head(memory, layout, blob, offset);
    if (!head || head->method == 0)
      break;
    const auto method =
        memory.pointer(blob.metadata + std::uint64_t{head->method - 1} * sizeof(std::uint64_t));
    if (!method)
      break;
    scopes.push_back({*method, head->bytecode == 0 ? 0 : head->bytecode - 1});
    // A caller's head precedes it, so this ends.
    offset = head->caller < offset ? head->caller : 0;
  }
  // The outermost is the code's own method: otherwise they do not belong to this code.
  if (scopes.empty() || scopes.back().method != blob.method)
    return {{blob.method, 0}};
  return scopes;
}

}  // namespace pe::languages
