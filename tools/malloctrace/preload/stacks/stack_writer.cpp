// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_writer.h"

#include <algorithm>

namespace pe::malloctrace {

bool StackPath::reserve(std::uint32_t depth) noexcept {
  constexpr std::size_t kFirstSize = 1024;
  if (depth <= codes_.size())
    return true;
  PrivateArray<std::uint32_t> larger;
  if (!larger.map(std::max<std::size_t>(kFirstSize, depth * std::size_t{2})))
    return false;
  std::copy_n(codes_.data(), depth_, larger.data());
  codes_.unmap();
  codes_ = larger;
  return true;
}

/// Whether one more site fits, with an entry of `added` frames.
bool StackWriter::has_room(std::uint32_t added) const noexcept {
  const heap::Header& header = shared_.header();
  const std::uint64_t site = std::uint64_t{header.sites} + 1;
  const std::uint64_t end = header.stack_bytes + heap::most_bytes_of_entry(added);
  return site < heap::kMaxSites && end <= heap::kMaxStackBytes &&
         shared_.open<heap::SiteTotals>(Section::kSites, site + 1) &&
         shared_.open<std::uint8_t>(Section::kStacks, end);
}

/// Returns the end of a mapping, at most that of the address space.
std::uint64_t MappingList::end_of(std::uint64_t avma, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kMost = ~(kPage - 1);
  if (bytes > kMost - avma)
    return kMost;
  return (avma + bytes + kPage - 1) & ~(kPage - 1);
}

/// Returns the first piece that ends after an address.
std::size_t MappingList::first_behind(std::uint64_t avma) const noexcept {
  const Piece* first = pieces_.data();
  return static_cast<std::size_t>(
      std::partition_point(first, first + count_,
                           [avma](const Piece& piece) { return piece.end <= avma; }) -
      first);
}

/// Whether there is another piece of the same mapping.  All its pieces are where the mapping was,
/// and `near` is the number of a piece after `piece`.
bool MappingList::has_more(std::size_t near, const Piece& piece) const noexcept {
  const std::uint64_t end = end_of(piece.block_avma, piece.block.bytes);
  for (std::size_t i = near; i < count_ && pieces_[i].start < end; ++i)
    if (pieces_[i].number == piece.number)
      return true;
  for (std::size_t i = near; i-- > 0 && pieces_[i].end > piece.block_avma;)
    if (pieces_[i].number == piece.number)
      return true;
  return false;
}

bool MappingList::insert(std::size_t at, const Piece& piece) noexcept {
  constexpr std::size_t kFirstSize = 64;
  if (count_ == pieces_.size()) {
    PrivateArray<Piece> old = pieces_;
    if (!pieces_.map(std::max(kFirstSize, old.size() * 2)))
      return false;
    std::copy_n(old.data(), count_, pieces_.data());
    old.unmap();
  }
  Piece* place = pieces_.data() + at;
  std::copy_backward(place, pieces_.data() + count_, pieces_.data() + count_ + 1);
  *place = piece;
  ++count_;
  return true;
}

/// Removes a part of a piece; returns the number of the next piece after that part.  If there is no
/// memory for one more piece, the rest after the part is removed as well.
std::size_t MappingList::take_out(std::size_t at, std::uint64_t from, std::uint64_t to) noexcept {
  Piece& piece = pieces_[at];
  if (from == piece.start && to == piece.end) {
    std::copy(&piece + 1, pieces_.data() + count_, &piece);
    --count_;
    return at;
  }
  if (from == piece.start) {
    piece.start = to;
    return at;
  }
  Piece behind = piece;
  behind.start = to;
  piece.end = from;
  if (behind.start != behind.end)
    insert(at + 1, behind);
  return at + 1;
}

bool MappingList::add(std::uint64_t avma, Block block) noexcept {
  const std::lock_guard guard(lock_);
  return insert(first_behind(avma), {avma, end_of(avma, block.bytes), avma, block, ++mappings_});
}

}  // namespace pe::malloctrace
