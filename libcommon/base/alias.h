// Which of several names of one address to show.
//
// perf's choice as it can be observed (perf script, version 6.1): a symbol
// with a size, then a strong one before a weak one, a global one before a local one, then the name
// with fewer leading underscores, then the longer one.  What is still equal
// goes by the alphabet, so that the choice never depends on the order of a table.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace pe {

enum class Binding : std::uint8_t { kWeak, kLocal, kGlobal };  ///< the better, the higher

struct Alias {
  bool has_size;
  Binding binding;
  std::string_view name;
};

/// Whether `a` is to be shown rather than `b`.
inline bool is_better_alias(const Alias& a, const Alias& b) noexcept {
  if (std::tie(a.has_size, a.binding) != std::tie(b.has_size, b.binding))
    return std::tie(a.has_size, a.binding) > std::tie(b.has_size, b.binding);
  const auto underscores = [](std::string_view name) {
    return std::min(name.find_first_not_of('_'), name.size());
  };
  if (underscores(a.name) != underscores(b.name))
    return underscores(a.name) < underscores(b.name);
  if (a.name.size() != b.name.size())
    return a.name.size() > b.name.size();
  return a.name < b.name;
}

}  // namespace pe
