// Chooses which of several symbols of one address to show.
//
// The following preferences decide, in this order:
//  - a symbol with a size,
//  - a name without glibc's internal prefix __GI_ (hidden aliases, which only debug files list),
//  - a global symbol before a weak one, and a weak one before a local one,
//  - the fewest leading underscores (kernels put marks such as __irqentry_text_end where functions
//    start),
//  - the shortest name,
//  - alphabetical order, so that the choice never depends on the order of a table.
//
// perf prefers the longest name (symbol.c, choose_best_symbol(), Linux 6.12): it shows open64 where
// a program calls open.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace pe {

enum class Binding : std::uint8_t { kLocal, kWeak, kGlobal };  ///< a higher value is preferred

struct Alias {
  bool has_size;
  Binding binding;
  std::string_view name;
};

/// Returns whether `a` is preferred to `b`.
inline bool is_better_alias(const Alias& a, const Alias& b) noexcept {
  const auto rank = [](const Alias& alias) {
    const std::size_t underscores = std::min(alias.name.find_first_not_of('_'), alias.name.size());
    return std::tuple(!alias.has_size, alias.name.starts_with("__GI_"),
                      -static_cast<int>(alias.binding), underscores, alias.name.size(), alias.name);
  };
  return rank(a) < rank(b);
}

}  // namespace pe
