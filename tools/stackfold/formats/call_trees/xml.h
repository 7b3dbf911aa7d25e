// XML, read front to back by Expat; the only place that includes it.
//
// Input is untrusted: a document type is refused, since entities let few bytes stand for many.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/input.h"

namespace pe::fold {

/// An element as it begins.  The views die with the call.
struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;

  /// nullopt if it has none of that name.
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
  /// May come in pieces.
  virtual void text(std::string_view text) = 0;
};

/// Reads `input` to its end.  Returns what is wrong with it, "line 3: not well-formed (invalid
/// token)", or nothing.
std::string read_xml(Input& input, XmlHandler& handler);

}  // namespace pe::fold
