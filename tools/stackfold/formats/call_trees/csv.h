// One line of comma-separated values: "a","b ""c""",3
//
// Source: RFC 4180; but a field does not hold a line's end, as no tool here prints one.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pe::fold {

/// The fields without their quotes and without blanks around these; nullopt if quotes do not match.
/// A line ends in an empty field if it ends in a comma.
std::optional<std::vector<std::string>> split_csv(std::string_view line);

/// The text behind the byte order mark that Windows puts in front of UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Where the column of that name is; nullopt if there is none.
std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

}  // namespace pe::fold
