// Reads the frames that a flame graph page draws.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pe::testing {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Rect {
  std::string title;
  double x = 0, width = 0, y = 0;
  int depth = 0;
};

/// Returns the text between the next `before` and the next `after`; moves `text` forward to
/// `after`.
inline std::string take_between(std::string_view& text, std::string_view before,
                                std::string_view after) {
  const auto start = text.find(before) + before.size();
  const auto end = text.find(after, start);
  BOOST_REQUIRE(start >= before.size() && end != std::string_view::npos);
  std::string part(text.substr(start, end - start));
  text.remove_prefix(end);
  return part;
}

inline std::vector<Rect> rects_of(std::string_view svg) {
  std::vector<Rect> rects;
  while (svg.find(" data-at=\"") != std::string_view::npos) {
    Rect r;
    const std::string at = take_between(svg, " data-at=\"", "\"");
    r.depth = std::stoi(at.substr(at.rfind(' ')));
    r.title = take_between(svg, "<title>", "</title>");
    r.x = std::stod(take_between(svg, "<rect x=\"", "\""));
    r.width = std::stod(take_between(svg, " width=\"", "\""));
    r.y = std::stod(take_between(svg, " y=\"", "\""));
    rects.push_back(r);
  }
  return rects;
}

/// One line "title at x wide width" for each rectangle.
inline std::string drawn(const std::string& svg) {
  std::string text;
  for (const Rect& r : rects_of(svg))
    text += r.title + fmt::format(" at {:.1f} wide {:.1f}\n", r.x, r.width);
  return text;
}

}  // namespace pe::testing
