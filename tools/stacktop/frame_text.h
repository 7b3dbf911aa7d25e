// Names of frames as people and programs read them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::stacktop {

/// Harmless to a terminal and to a table of one line a row: control characters, also those beyond
/// ASCII, what turns the direction of writing, and bytes that are no UTF-8 become \xNN.
/// An empty name is "[no name]".
std::string shown(std::string_view name);

/// How many columns `text`, which shown() made, takes: one a character.
std::size_t columns_of(std::string_view text);

/// `text` in at most `columns` columns: its middle becomes "...", for the ends of names of C++
/// functions tell them apart as often as the beginnings.
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace pe::stacktop
