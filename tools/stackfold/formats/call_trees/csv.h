// Reads one line of comma-separated values: "a","b ""c""",3
//
// Source: RFC 4180, except that a field cannot contain a line end: the supported tools print none.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pe::fold {

/// Returns the fields without quotes and surrounding blanks; nullopt if quotes do not match.  If
/// the line ends with a comma, the last field is empty.
std::optional<std::vector<std::string>> split_csv(std::string_view line);

/// Returns the index of the column with that name; nullopt if there is none.
std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

}  // namespace pe::fold
