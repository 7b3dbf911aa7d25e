// Reads XML front to back with Expat.  Only xml.cpp includes Expat's header.
//
// Input is untrusted.  The reader refuses a document type, because entities let a few bytes expand
// to many.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/input.h"

namespace pe::fold {

/// The start of an element.  The views are valid only during the call.
struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;

  /// Returns nullopt if the element has no such attribute.
  [[nodiscard]] std::optional<std::string_view> attribute(std::string_view wanted) const {
    for (const auto& [key, value] : attributes)
      if (key == wanted)
        return value;
    return std::nullopt;
  }
};

class XmlHandler {
 public:
  XmlHandler() = default;
  XmlHandler(const XmlHandler&) = delete;
  XmlHandler& operator=(const XmlHandler&) = delete;
  XmlHandler(XmlHandler&&) = delete;
  XmlHandler& operator=(XmlHandler&&) = delete;
  virtual ~XmlHandler() = default;

  virtual void begin(const XmlElement& element) = 0;
  virtual void end(std::string_view name) = 0;
  /// One text may arrive in several calls.
  virtual void text(std::string_view text) = 0;
};

/// Reads `input` to its end.  Returns an error message, "line 3: not well-formed (invalid token)",
/// or an empty string.
std::string read_xml(Input& input, XmlHandler& handler);

}  // namespace pe::fold
