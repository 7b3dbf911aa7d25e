// Reads the time profile that Xcode's xctrace exports as XML:
//
//   <trace-query-result><node xpath="..."><schema name="time-profile">...</schema>
//   <row><sample-time id="1" fmt="00:00.057">57246708</sample-time> ...
//     <weight id="9" fmt="1.00 ms">1000000</weight>
//     <backtrace id="10"><frame id="11" name="work" addr="0x18d"><binary id="12" name="app" .../>
//       </frame><frame id="13" name="main" addr="0x18c"><binary
//       ref="12"/></frame></backtrace></row>
//   <row> ... <weight ref="9"/><backtrace ref="10"/></row>
//
// The command is: xctrace export --input F.trace --xpath '.../table[@schema="time-profile"]'.
// "ref" refers to an earlier element by its id.  Frames are leaf first; weights are in nanoseconds.
// Newer versions put a backtrace into a tagged-backtrace, which also has an id.
// Source: xctrace(1), and published exports of Xcode 14 to 16.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/input.h"
#include "stackfold/formats/format.h"

// Reads XML front to back with Expat.  Only xml.cpp includes Expat's header.
//
// Input is untrusted.  The reader refuses a document type, because entities let a few bytes expand
// to many.

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

namespace pe::fold::xctrace {

bool looks_like(std::string_view head);

/// The types are samples and time, in microseconds.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::xctrace
