// What a profile is of, as Pyroscope's POST /ingest has it: name{key=value,...}.
//
// The grammar has no quotes, so what it is made of is checked.  The rules are those of Pyroscope
// (github.com/grafana/pyroscope, api/model/labelset/{labelset,validate}.go: what may stand in
// names, and that a value ends at "," and "}"; its limits validation.max-length-label-name and
// -value) and, for the first character of a label's name, those of Prometheus, which it keeps.
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pe::push {

/// By name, so that the same labels are the same text.
using Labels = std::map<std::string, std::string>;

/// More cannot be in the first line of a request everywhere.
inline constexpr std::size_t kMostSeriesBytes = 4096;

/// Letters, digits, and "-", ".", "/", "_".
[[nodiscard]] bool is_app_name(std::string_view name);

/// "KEY=VALUE"; nullopt if Pyroscope would not take it.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_label(std::string_view text);

/// The text, with "_" for each byte that a name of an application cannot have: fit for any value.
[[nodiscard]] std::string plain_value(std::string_view text);

/// name{key=value,...}; nullopt if that is longer than kMostSeriesBytes.
[[nodiscard]] std::optional<std::string> series_text(std::string_view app_name,
                                                     const Labels& labels);

}  // namespace pe::push
