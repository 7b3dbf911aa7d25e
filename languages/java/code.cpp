// SPDX-License-Identifier: MIT
#include "languages/java/code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "languages/java/binary.h"
#include "languages/java/names.h"

namespace pe::languages {
namespace {

constexpr std::uint32_t kMostHeaps = 16, kMostShift = 16;
constexpr std::uint64_t kMostHeapBytes = std::uint64_t{1} << 32U;
constexpr std::uint32_t kMostFrameWords = 0xffff;

/// Reads the header of a blob.
class Header {
 public:
  Header(Memory& memory, std::uint64_t start) : memory_(memory), start_(start) {}

  /// Returns the field at `offset`; 0 if it is unreadable.
  template <typename T>
  T at(std::uint32_t offset) {
    const auto value = memory_.value<T>(start_ + offset);
    is_readable_ = is_readable_ && value;
    return value.value_or(T{});
  }
  std::uint64_t pointer(std::uint32_t offset) { return at<std::uint64_t>(offset); }
  /// Returns the place that is stored as a distance from the header.
  std::uint64_t place(std::uint32_t offset) { return start_ + at<std::uint32_t>(offset); }

  /// Whether all fields so far were readable.
  [[nodiscard]] bool is_readable() const noexcept { return is_readable_; }

 private:
  Memory& memory_;
  std::uint64_t start_;
  bool is_readable_ = true;
};

/// Whether [start, end) is a table of a plausible size; an empty one is.
bool is_table(std::uint64_t start, std::uint64_t end) {
  return start <= end && end - start <= kMostCodeBytes;
}

void read_method(Header& header, const HotspotLayout& layout, CodeBlob& blob) {
  blob.kind = CodeBlob::Kind::kMethod;
  blob.method = header.pointer(layout.code_method);
  blob.compile_id = header.at<std::uint32_t>(layout.code_compile_id);
  blob.original_pc = header.at<std::uint32_t>(layout.code_original_pc);
  if (layout.has_offsets) {
    const std::uint64_t immutable = header.pointer(layout.code_immutable);
    blob.metadata = header.pointer(layout.blob_mutable_data) +
                    header.at<std::uint32_t>(layout.blob_relocation_size);
    blob.scopes = immutable + header.at<std::uint32_t>(layout.code_scopes);
    blob.scopes_end = immutable + header.at<std::uint32_t>(layout.code_immutable_size);
    blob.pc_descs = immutable + header.at<std::uint32_t>(layout.code_pc_descs);
    blob.pc_descs_end = blob.scopes;
    blob.deopt_handler = header.place(layout.code_deopt_handler);
  } else {
    blob.metadata = header.place(layout.code_metadata);
    blob.scopes = header.pointer(layout.code_scopes);
    blob.pc_descs = header.place(layout.code_pc_descs);
    blob.scopes_end = blob.pc_descs;
    blob.pc_descs_end = header.place(layout.code_pc_descs_end);
    blob.deopt_handler = header.pointer(layout.code_deopt_handler);
  }
  if (!is_table(blob.scopes, blob.scopes_end))
    blob.scopes = blob.scopes_end = 0;
  if (!is_table(blob.pc_descs, blob.pc_descs_end))
    blob.pc_descs = blob.pc_descs_end = 0;
}

bool is_method(const std::optional<std::string>& name) {
  return name == "nmethod" || name == "native nmethod";
}

}  // namespace

void CodeCache::read(Memory& memory, const HotspotLayout& layout) {
  heaps_.clear();
  interpreter_start_ = interpreter_end_ = 0;
  if (const auto queue = memory.pointer(layout.interpreter); queue && *queue != 0) {
    const auto buffer = memory.pointer(*queue + layout.queue_buffer);
    const auto bytes = memory.value<std::uint32_t>(*queue + layout.queue_bytes);
    if (buffer && bytes && *bytes <= kMostCodeBytes) {
      interpreter_start_ = *buffer;
      interpreter_end_ = *buffer + *bytes;
    }
  }
  const auto list = memory.pointer(layout.heaps);
  if (!list || *list == 0)
    return;
  const auto length = memory.value<std::uint32_t>(*list + layout.array_length);
  const auto data = memory.pointer(*list + layout.array_data);
  if (!length || !data)
    return;
  for (std::uint32_t i = 0; i < std::min(*length, kMostHeaps); ++i) {
    const auto heap = memory.pointer(*data + i * sizeof(std::uint64_t));
    if (!heap)
      continue;
    const auto low = memory.pointer(*heap + layout.heap_memory + layout.space_low);
    const auto high = memory.pointer(*heap + layout.heap_memory + layout.space_high);
    const auto segments = memory.pointer(*heap + layout.heap_segments + layout.space_low);
    const auto shift = memory.value<std::uint32_t>(*heap + layout.heap_segment_shift);
    if (low && high && segments && shift && *shift <= kMostShift && *low < *high &&
        *high - *low <= kMostHeapBytes)
      heaps_.push_back({*low, *high, *segments, *shift});
  }
}

bool CodeCache::contains(std::uint64_t avma) const noexcept {
  return std::ranges::any_of(
      heaps_, [avma](const Heap& heap) { return avma >= heap.low && avma < heap.high; });
}

std::optional<std::uint64_t> CodeCache::find(Memory& memory, const HotspotLayout& layout,
                                             std::uint64_t avma) const {
  constexpr std::uint8_t kFree = 0xff;
  constexpr int kMostHops = 512;  // of up to 254 segments each: 16 MB of code
  const auto heap = std::ranges::find_if(
      heaps_, [avma](const Heap& each) { return avma >= each.low && avma < each.high; });
  if (heap == heaps_.end())
    return std::nullopt;
  std::uint64_t segment = (avma - heap->low) >> heap->shift;
  for (int hop = 0; hop < kMostHops; ++hop) {
    const auto back = memory.value<std::uint8_t>(heap->segments + segment);
    if (!back || *back == kFree || *back > segment)
      return std::nullopt;
    if (*back == 0) {
      const std::uint64_t block = heap->low + (segment << heap->shift);
      return block + layout.block_bytes;
    }
    segment -= *back;
  }
  return std::nullopt;
}

std::optional<CodeBlob> CodeCache::blob(Memory& memory, const HotspotLayout& layout,
                                        std::uint64_t start) const {
  constexpr std::size_t kMostName = 32;
  Header header(memory, start);
  if (memory.value<std::uint8_t>(start - layout.block_bytes + layout.block_used).value_or(0) == 0)
    return std::nullopt;  // a freed block keeps most of its bytes
  CodeBlob blob;
  const auto bytes = header.at<std::uint32_t>(layout.blob_size);
  blob.start = start;
  blob.end = start + bytes;
  blob.name = header.pointer(layout.blob_name);
  blob.frame_words = header.at<std::uint32_t>(layout.blob_frame_words);
  blob.code_start = layout.has_offsets ? header.place(layout.blob_code_start)
                                       : header.pointer(layout.blob_code_start);
  blob.code_end = layout.has_offsets ? header.place(layout.blob_code_end)
                                     : header.pointer(layout.blob_code_end);
  const std::int64_t complete = layout.has_offsets
                                    ? header.at<std::int16_t>(layout.blob_frame_complete)
                                    : header.at<std::int32_t>(layout.blob_frame_complete);
  if (!header.is_readable() || bytes > kMostCodeBytes || blob.code_start < start ||
      blob.code_end > blob.end || blob.code_start > blob.code_end)
    return std::nullopt;
  if (blob.frame_words > kMostFrameWords)  // -1: it has no frames of one size
    blob.frame_words = 0;
  blob.frame_complete = blob.code_start + static_cast<std::uint64_t>(std::max<std::int64_t>(
                                              0, std::min<std::int64_t>(complete, bytes)));
  if (interpreter_start_ >= blob.code_start && interpreter_start_ < blob.code_end)
    blob.kind = CodeBlob::Kind::kInterpreter;
  else if (is_method(read_c_text(memory, blob.name, kMostName)))
    read_method(header, layout, blob);
  return header.is_readable() ? std::optional(blob) : std::nullopt;
}

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
