// Numbers the names of frames while a tree is built, and keeps each name once.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash_bytes.h"
#include "base/string_arena.h"

namespace pe::painting {

class NameIds {
 public:
  /// Returns the number of `name`.  New names get consecutive numbers from 0.
  std::uint32_t find_or_add(std::string_view name) {
    if (const auto found = ids_.find(name); found != ids_.end())
      return found->second;
    const auto id = static_cast<std::uint32_t>(names_.size());
    const std::string_view kept = texts_.store(name);
    names_.push_back(kept);
    ids_.emplace(kept, id);
    return id;
  }

  [[nodiscard]] const std::vector<std::string_view>& names() const noexcept { return names_; }

  /// Moves texts and names out.  Leaves the table empty and unusable.
  void move_to(StringArena& texts, std::vector<std::string_view>& names) && {
    texts = std::move(texts_);
    names = std::move(names_);
  }

 private:
  StringArena texts_;
  std::vector<std::string_view> names_;  ///< views into texts_
  boost::unordered_flat_map<std::string_view, std::uint32_t, HashBytes> ids_;
};

}  // namespace pe::painting
