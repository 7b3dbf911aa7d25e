// Names of frames, each kept once and numbered, while a tree is built.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/string_arena.h"

namespace pe::picture {

class NameIds {
 public:
  /// The number of `name`: names are counted from 0 as they come.
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

  /// Hands both over; the table is empty and unusable then.
  void move_to(StringArena& texts, std::vector<std::string_view>& names) && {
    texts = std::move(texts_);
    names = std::move(names_);
  }

 private:
  StringArena texts_;
  std::vector<std::string_view> names_;  ///< views into texts_
  // libstdc++'s hash reads eight bytes at a time; boost's reads one.
  boost::unordered_flat_map<std::string_view, std::uint32_t, std::hash<std::string_view>> ids_;
};

}  // namespace pe::picture
