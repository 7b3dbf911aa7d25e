// Adds stacks to the list in the shared memory that malloctrace/heap/layout.h describes.
//
// Nothing finds a stack in the list again: whoever adds one has looked it up in the SiteTable.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "malloctrace/heap/layout.h"
#include "malloctrace/preload/memory/block_table.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"

namespace pe::malloctrace {

/// The codes of the stack that a thread added last, outermost first.  In zeroed memory.
class StackPath {
 public:
  /// Makes room for a stack; false, and no change, if there is no memory.
  bool reserve(std::uint32_t depth) noexcept;
  void stop() noexcept { codes_.unmap(); }

  /// Returns how many outermost frames a stack has in common with this one.
  template <typename CodeOf>
  [[nodiscard]] std::uint32_t common(std::uint32_t depth, CodeOf code) const noexcept {
    std::uint32_t same = 0;
    while (same < depth && same < depth_ && codes_[same] == code(same))
      ++same;
    return same;
  }
  /// Returns how many frames are to be dropped to keep `same`.  The thread before in the slot may
  /// have left more of them.
  [[nodiscard]] std::uint32_t dropped(std::uint32_t same) const noexcept {
    return depth_ == 0 ? heap::kAllFrames : depth_ - same;
  }
  template <typename CodeOf>
  void replace(std::uint32_t same, std::uint32_t depth, CodeOf code) noexcept {
    for (std::uint32_t i = same; i < depth; ++i)
      codes_[i] = code(i);
    depth_ = depth;
  }
  /// Returns the code of a frame; 0: outside of the outermost.
  [[nodiscard]] std::uint32_t code_outside(std::uint32_t frame) const noexcept {
    return frame == 0 ? 0 : codes_[frame - 1];
  }
  [[nodiscard]] std::size_t private_bytes() const noexcept { return codes_.bytes(); }

 private:
  PrivateArray<std::uint32_t> codes_;
  std::uint32_t depth_;
};

/// The caller must hold a lock for all calls.
class StackWriter {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(SharedMemory shared) noexcept {
    shared_ = shared;
    return expected_.map(heap::kMaxCodes);
  }

  /// Adds a new stack of `depth` frames, at least one, and returns its site; 0 if there is no room.
  /// `code(i)` is the number of a frame's code, the outermost first.  `last` is of the thread in
  /// the slot.
  template <typename CodeOf>
  std::uint32_t add(StackPath& last, std::uint32_t slot, std::uint32_t depth,
                    CodeOf code) noexcept {
    const std::uint32_t same = last.common(depth, code);
    const heap::StackChange change{last.dropped(same), depth - same, slot, slot != last_slot_};
    if (!has_room(change.added) || !last.reserve(depth))
      return 0;
    std::uint8_t* stacks = shared_.stacks();
    heap::Header& header = shared_.header();
    const std::uint8_t* end = heap::write_stack(
        stacks + header.stack_bytes, change, last.code_outside(same),
        [code, same](std::uint32_t i) { return code(same + i); }, expected_);
    last.replace(same, depth, code);
    last_slot_ = slot;
    const std::uint32_t site = header.sites + 1;
    publish(header.stack_bytes, static_cast<std::uint32_t>(end - stacks));
    publish(header.sites, site);
    return site;
  }
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return shared_.header().codes * sizeof(std::uint32_t);
  }

 private:
  [[nodiscard]] bool has_room(std::uint32_t added) const noexcept;

  SharedMemory shared_;
  PrivateArray<std::uint32_t> expected_;  ///< by code: that of the frame added last inside of it
  std::uint32_t last_slot_;               ///< of the entry that was added last
};

// Memory that the program has mapped itself: the remaining pieces of each mapping, by address.
//
// A mapping may be unmapped piece by piece, even in its middle, or by another mapping placed over
// it.

class MappingList {
 public:
  /// The part of a mapping that is about to go.
  struct Cut {
    Block block;               ///< the whole mapping, as the program requested it
    std::uint64_t from, to;    ///< bytes of it
    std::uint64_t block_avma;  ///< where it started
    bool is_last;              ///< nothing else of it is left
  };

  /// Adds a mapping of `block.bytes` at `avma`, rounded up to pages; it must not overlap a known
  /// one.  False if there is no memory.
  bool add(std::uint64_t avma, Block block) noexcept;

  /// Removes all pieces in the pages of a range, and calls `on_cut(Cut)` for each of them, under a
  /// lock.
  template <typename Function>
  void cut(std::uint64_t avma, std::uint64_t bytes, Function on_cut) noexcept {
    const std::uint64_t end = end_of(avma, bytes);
    const std::lock_guard guard(lock_);
    for (std::size_t i = first_behind(avma); i < count_ && pieces_[i].start < end;) {
      const Piece before = pieces_[i];
      const std::uint64_t from = std::max(avma, before.start);
      const std::uint64_t to = std::min(end, before.end);
      i = take_out(i, from, to);
      const auto offset = [&before](std::uint64_t place) {
        return std::min(place - before.block_avma, before.block.bytes);
      };
      on_cut(Cut{before.block, offset(from), offset(to), before.block_avma, !has_more(i, before)});
    }
  }

  [[nodiscard]] std::uint64_t private_bytes() const noexcept { return pieces_.bytes(); }

 private:
  struct Piece {
    std::uint64_t start, end;
    std::uint64_t block_avma;
    Block block;
    std::uint64_t number;  ///< of the mapping
  };

  static std::uint64_t end_of(std::uint64_t avma, std::uint64_t bytes) noexcept;
  [[nodiscard]] std::size_t first_behind(std::uint64_t avma) const noexcept;
  [[nodiscard]] bool has_more(std::size_t near, const Piece& piece) const noexcept;
  bool insert(std::size_t at, const Piece& piece) noexcept;
  std::size_t take_out(std::size_t at, std::uint64_t from, std::uint64_t to) noexcept;

  SpinLock lock_;
  PrivateArray<Piece> pieces_;  ///< by address
  std::size_t count_;
  std::uint64_t mappings_;  ///< number of mappings so far
};

}  // namespace pe::malloctrace
