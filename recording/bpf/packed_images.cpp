// SPDX-License-Identifier: MIT
#include "recording/bpf/packed_images.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "languages/registry.h"
#include "objects/image.h"
#include "recording/bpf/kernel_rule.h"
#include "recording/bpf/layout.h"
#include "stream/proc/own_rights.h"
#include "unwind/cfi/unwind_table.h"

namespace pe::unwind {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << kBlockShift;

class Packer {
 public:
  Packer(const FlatCodes& codes, std::uint32_t rows_at, std::uint32_t max_words)
      : codes_(codes), rows_at_(rows_at), max_words_(std::min(max_words, kMaxFileWords)) {}

  std::optional<PackedTable> pack(CodeRange range);

 private:
  [[nodiscard]] std::uint64_t svma_of_next() const noexcept {
    return next_ < codes_.rows.size() ? codes_.base_svma + codes_.rows[next_].offset
                                      : std::numeric_limits<std::uint64_t>::max();
  }
  void read_block(std::uint64_t start_svma);
  std::uint32_t place_block();

  const FlatCodes& codes_;
  std::uint32_t rows_at_, max_words_;
  PackedTable packed_;
  std::size_t next_ = 0;                  ///< the first row that has not been read
  std::uint32_t active_ = kNumberOfNone;  ///< rule number of the row before it
  std::vector<std::uint32_t> block_;
  std::unordered_map<std::uint32_t, std::uint32_t> first_rows_;  ///< places, by rule number
};

void Packer::read_block(std::uint64_t start_svma) {
  block_.clear();
  for (; svma_of_next() <= start_svma; ++next_)
    active_ = codes_.rows[next_].code;
  block_.push_back(active_);
  for (; svma_of_next() - start_svma < kBlockBytes; ++next_) {
    active_ = codes_.rows[next_].code;
    block_.push_back(static_cast<std::uint32_t>(svma_of_next() - start_svma) << kRowShift |
                     active_);
  }
}

/// Returns the place of the block's first row, counted from the first row of all.
std::uint32_t Packer::place_block() {
  const auto known = first_rows_.find(block_.front());
  if (block_.size() == 1 && known != first_rows_.end())
    return known->second;
  const std::size_t in_chunk = (rows_at_ + packed_.rows.size()) % kChunkWords;
  if (in_chunk + block_.size() > kChunkWords)
    packed_.rows.resize(packed_.rows.size() + kChunkWords - in_chunk);
  const auto at = static_cast<std::uint32_t>(packed_.rows.size());
  packed_.rows.insert(packed_.rows.end(), block_.begin(), block_.end());
  first_rows_.try_emplace(block_.front(), at);
  return at;
}

std::optional<PackedTable> Packer::pack(CodeRange range) {
  constexpr std::uint64_t kMaxSvma = std::uint64_t{1} << 63;  // so that nothing here wraps
  if (std::max(range.end_svma, codes_.base_svma) > kMaxSvma)
    return std::nullopt;
  packed_.base_svma = range.start_svma / kBlockBytes * kBlockBytes;
  if (range.end_svma <= range.start_svma ||
      (range.end_svma - 1 - packed_.base_svma) / kBlockBytes >= max_words_)
    return std::nullopt;
  const std::uint64_t blocks = (range.end_svma - 1 - packed_.base_svma) / kBlockBytes + 1;
  packed_.index.reserve(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    read_block(packed_.base_svma + i * kBlockBytes);
    const std::uint32_t first = place_block();
    if (packed_.rows.size() + blocks > max_words_)
      return std::nullopt;
    packed_.index.push_back(static_cast<std::uint32_t>(block_.size() - 1) << kRowShift | first);
  }
  return std::move(packed_);
}

}  // namespace

std::optional<PackedTable> pack(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at,
                                std::uint32_t max_words) {
  return Packer(codes, rows_at, max_words).pack(range);
}

std::uint32_t WordPool::append(std::span<const std::uint32_t> words) {
  assert(words.size() <= left());
  const std::uint32_t first = next_;
  while (!words.empty()) {
    const std::span<std::uint32_t> chunk = store_.chunk(next_ >> kChunkShift);
    const std::size_t at = next_ % kChunkWords;
    const auto part = words.first(std::min(words.size(), kChunkWords - at));
    std::copy(part.begin(), part.end(), chunk.begin() + static_cast<std::ptrdiff_t>(at));
    words = words.subspan(part.size());
    next_ += static_cast<std::uint32_t>(part.size());
  }
  return first;
}

namespace {

/// Returns the range that the rows describe, extended to whole pages of the segments that it is in.
/// These pages also have code that no row describes.  A mapping of all of them need not be divided.
CodeRange range_of(const FlatCodes& codes, std::span<const objects::Segment> segments) {
  constexpr std::uint64_t kPageMask = 4095;
  const CodeRange described{codes.base_svma, codes.base_svma + codes.rows.back().offset};
  CodeRange range = described;
  for (const objects::Segment& segment : segments) {
    const std::uint64_t end = segment.svma + segment.memory_bytes;
    if (!segment.executable || segment.svma >= described.end_svma || end <= described.start_svma ||
        end + kPageMask < end)
      continue;
    range.start_svma = std::min(range.start_svma, segment.svma & ~kPageMask);
    range.end_svma = std::max(range.end_svma, (end + kPageMask) & ~kPageMask);
  }
  return range;
}

bool may_have_embedded_code(std::string_view path) {
  const languages::Language* const machine = languages::machine_of(path);
  return machine != nullptr && machine->has_embedded_code;
}

}  // namespace

PackedImages::Limits PackedImages::Limits::usual() {
  constexpr std::size_t kPart = 16;
  Limits limits;
  limits.section_bytes = stream::share_of_memory(limits.section_bytes, kPart);
  limits.words = static_cast<std::uint32_t>(
      stream::share_of_memory(limits.words * sizeof(std::uint32_t), kPart) / sizeof(std::uint32_t));
  return limits;
}

PackedImages::PackedImages(TableStore& store, objects::FileMatch match, const Limits& limits,
                           Budget* budget)
    : match_(match),
      budget_(budget),
      rules_(store, std::min<std::uint32_t>(limits.rules, kMaxRules)),
      pool_(store, std::min(limits.words, WordPool::kMaxWords)),
      left_section_bytes_(limits.section_bytes) {}

const PackedImage& PackedImages::of(const stream::Mapping& mapping, std::uint32_t pid) {
  const auto known = images_.find(mapping.file);
  if (known != images_.end())
    return known->second;
  if (outer_ != nullptr)
    outer_->leave();
  auto image = open_if_paid(mapping, pid);
  if (outer_ != nullptr)
    outer_->enter();
  if (!image) {
    was_refused_ = true;
    return refused_;
  }
  switch (image->kind) {
    case PackedImage::Kind::kWithoutRules:
      ++statistics_.without_rules;
      break;
    case PackedImage::Kind::kPacked:
      ++statistics_.files;
      break;
    case PackedImage::Kind::kLeftOut:
      ++statistics_.left_out;
      break;
  }
  return images_.emplace(mapping.file, *std::move(image)).first->second;
}

/// Returns nullopt if the process cannot pay for it.
std::optional<PackedImage> PackedImages::open_if_paid(const stream::Mapping& mapping,
                                                      std::uint32_t pid) {
  Spender spender = budget_ != nullptr ? Spender(*budget_, pid) : Spender();
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return std::nullopt;
  PackedImage image = open(mapping, pid, spender);
  return spender.has_lost() ? std::nullopt : std::optional(std::move(image));
}

PackedImage PackedImages::open(const stream::Mapping& mapping, std::uint32_t pid,
                               Spender& spender) {
  if (is_full() && prepared_.empty())
    return {.kind = PackedImage::Kind::kLeftOut};
  auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping, match_, &cache_);
  auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return {};
  image->pay_by(spender);
  if (!prepared_.empty())
    if (const auto identity = objects::identity_of(*image))
      if (const auto known = prepared_.find(*identity); known != prepared_.end())
        return known->second;
  return pack_file(mapping.file->path, *image);
}

void PackedImages::prepare(const std::string& path) {
  const auto program = objects::open_program(path);
  if (!program || !may_have_embedded_code(program->path))
    return;
  const auto identity = objects::identity_of(program->image);
  if (identity && !prepared_.contains(*identity))
    prepared_.emplace(*identity, pack_file(program->path, program->image));
}

PackedImage PackedImages::pack_file(const std::string& path, const objects::Image& image) {
  if (is_full())
    return {.kind = PackedImage::Kind::kLeftOut};
  PackedImage packed = pack_image(image);
  if (may_have_embedded_code(path)) {
    packed.of_runtime = languages::find_embedded_code(image);
    packed.segments = {image.segments().begin(), image.segments().end()};
  }
  return packed;
}

/// The samples that it reads are not what `spender` pays for.
void PackedImages::do_meanwhile(Spender* spender) {
  if (!meanwhile_)
    return;
  if (spender != nullptr)
    spender->leave();
  meanwhile_();
  if (spender != nullptr)
    spender->enter();
}

PackedImage PackedImages::pack_image(const objects::Image& image) {
  const UnwindTable table(image);
  if (table.section_bytes() > left_section_bytes_)
    return {.kind = PackedImage::Kind::kLeftOut};
  left_section_bytes_ -= table.section_bytes();
  rules_.begin_file();
  constexpr std::size_t kRowsBetween = 1024;
  std::size_t rows = 0;
  const FlatCodes codes = table.flat_codes(
      [&](const CfiRow& row, bool is_signal_frame) {
        if (++rows % kRowsBetween == 0)
          do_meanwhile(image.spender());
        return rules_.number_of(entry_of(row, is_signal_frame));
      },
      kNumberOfNone, kMaxFileWords, image.spender());
  if (image.lacks_parts())
    return {.kind = PackedImage::Kind::kLeftOut};
  statistics_.functions += codes.functions;
  if (codes.rows.empty())
    return {};
  PackedImage result{.kind = PackedImage::Kind::kLeftOut,
                     .segments = {image.segments().begin(), image.segments().end()},
                     .range = range_of(codes, image.segments())};
  const auto packed = pack(codes, result.range, pool_.next(), pool_.left());
  const auto bytes = packed ? 4 * (packed->rows.size() + packed->index.size()) : 0;
  // The kernel's memory for tables is limited, too, and nothing in it is given back.
  if (!packed || (image.spender() != nullptr && !image.spender()->is_free() &&
                  !image.spender()->may_keep(bytes)))
    return result;
  result.kind = PackedImage::Kind::kPacked;
  result.range.start_svma = packed->base_svma;
  result.rows = pool_.append(packed->rows);
  result.index = pool_.append(packed->index);
  statistics_.rows += codes.rows.size();
  statistics_.unsupported_rows += static_cast<std::size_t>(
      std::count_if(codes.rows.begin(), codes.rows.end(),
                    [](const CodedRow& row) { return row.code == kNumberOfUnsupported; }));
  return result;
}

}  // namespace pe::unwind
