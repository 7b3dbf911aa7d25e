// Finds symbols by name, also those of data, which SymbolTable leaves out.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "objects/image.h"

namespace pe::objects {

/// Calls `on_symbol(name, svma, bytes)` for each symbol that a 64-bit image defines in .symtab or
/// .dynsym.  The name is valid until the call returns.  Skips a table that is damaged, or larger
/// than `most_bytes`.
void for_each_symbol(const Image& image,
                     const std::function<void(std::string_view name, std::uint64_t svma,
                                              std::uint64_t bytes)>& on_symbol,
                     std::uint64_t most_bytes = std::uint64_t{256} << 20U);

}  // namespace pe::objects
