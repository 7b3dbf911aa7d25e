// Stores each frame text once and numbers it.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash_bytes.h"
#include "base/string_arena.h"

namespace pe::folded {

using FrameId = std::uint32_t;

/// Numbers new texts in the order in which they arrive, from 0.
class FrameTable {
 public:
  /// Returns the number of `text`, which must hold no ';'.  Copies the text if it is new.
  FrameId intern(std::string_view text) {
    const auto found = ids_.find(text);
    if (found != ids_.end())
      return found->second;
    const std::string_view kept = arena_.store(text);
    const auto id = static_cast<FrameId>(texts_.size());
    texts_.push_back(kept);
    ids_.emplace(kept, id);
    return id;
  }
  /// Returns a view that lives as long as the table.
  [[nodiscard]] std::string_view operator[](FrameId id) const { return texts_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }

 private:
  StringArena arena_;
  std::vector<std::string_view> texts_;
  boost::unordered_flat_map<std::string_view, FrameId, HashBytes> ids_;
};

}  // namespace pe::folded
