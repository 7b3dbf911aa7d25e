// Reads the file of --nameattr: titles, links and attributes for functions.
//
// A line is a function's name, marks included, followed by fields "key=value", all
// separated by tabs.  Keys: title, href, target, id, class, and g_extra and a_extra,
// whose values are attributes in XML syntax.  Fields that could run script are rejected.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "painting/svg/page.h"

namespace pe::flamesvg {

class NameAttributes {
 public:
  NameAttributes() = default;
  /// Throws Error if the file cannot be read.
  static NameAttributes read(const std::string& path);

  /// Returns null if the file does not have the name.  The result is valid as long as *this.
  [[nodiscard]] const painting::FrameExtra* find(std::string_view name) const;

  /// Number of fields that are invalid or rejected.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
  [[nodiscard]] const std::string& first_ignored() const noexcept { return first_ignored_; }

 private:
  std::map<std::string, painting::FrameExtra, std::less<>> by_name_;
  std::uint64_t ignored_ = 0;
  std::string first_ignored_;  ///< "FILE:LINE: 'field'"
};

/// Parses `a="x" b='y'`.  nullopt for anything else, and if `text` has an event handler or
/// a link to script.
std::optional<std::vector<painting::Attribute>> parse_attributes(std::string_view text);

/// True if a link to `address` is allowed: it is relative, or http, https, ftp, mailto or file.
bool is_safe_address(std::string_view address);

}  // namespace pe::flamesvg
