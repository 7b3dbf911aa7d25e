// Adds stacks to the list in the shared memory that malloctrace/heap/stack_list.h describes.
//
// Nothing finds a stack in the list again: whoever adds one has looked it up in the SiteTable.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "malloctrace/heap/layout.h"
#include "malloctrace/heap/stack_list.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"

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

}  // namespace pe::malloctrace
