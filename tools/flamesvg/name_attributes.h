// The file of --nameattr: titles, links and attributes for functions.
//
// A line is a function's name, marks included, then fields "key=value", all
// separated by tabs.  Keys: title, href, target, id, class, and g_extra and a_extra,
// which hold attributes as XML has them.  What could run script is refused.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picture/svg/page.h"

namespace pe::flamesvg {

class NameAttributes {
 public:
  NameAttributes() = default;
  /// Throws Error if the file cannot be read.
  static NameAttributes read(const std::string& path);

  /// Null if nothing is known about the name.  Lives as long as *this.
  [[nodiscard]] const picture::FrameExtra* find(std::string_view name) const;

  /// Fields that are none, or refused.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
  [[nodiscard]] const std::string& first_ignored() const noexcept { return first_ignored_; }

 private:
  std::map<std::string, picture::FrameExtra, std::less<>> by_name_;
  std::uint64_t ignored_ = 0;
  std::string first_ignored_;  ///< "FILE:LINE: 'field'"
};

/// `a="x" b='y'`; nullopt if it is anything else, or holds a handler of events or
/// a link to script.
std::optional<std::vector<picture::Attribute>> parse_attributes(std::string_view text);

/// May a link lead there?  To relative addresses, and by http, https, ftp, mailto and file.
bool is_safe_address(std::string_view address);

}  // namespace pe::flamesvg
