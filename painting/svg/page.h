// Writes the page: a self-contained SVG document with its style and its script.
//
// Without the script it is a static flame graph whose rectangles have a <title>.  The script
// (page/*.js) adds zoom, search and the details bar.  The page passes values to the script
// as attributes, never as program text, so no name can become code.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/output.h"
#include "painting/svg/colors.h"
#include "painting/svg/geometry.h"
#include "painting/svg/narrow_runs.h"

namespace pe::painting {

/// Colours of text and background around the frames.
enum class Theme {
  kAuto,  ///< light or dark, as the reader prefers
  kLight,
  kDark,
};

/// A name and its text.
struct Attribute {
  std::string name;   ///< of an attribute: a valid XML name
  std::string value;  ///< escaped when written
};

/// Texts and appearance of a page.  PageWriter escapes the texts.
struct PageStyle {
  Geometry geometry;
  std::string title, subtitle;
  std::string font_family = "system-ui, sans-serif";  ///< a list, as in CSS
  std::string count_name = "samples";
  std::string whole_name = "samples";    ///< frames are shares of it: all samples, all time
  std::string name_type = "Function:";   ///< precedes a name in the details bar
  std::optional<Background> background;  ///< nullopt: flat white
  Theme theme = Theme::kAuto;
  /// The page is as wide as the window if the script runs, otherwise as wide as the geometry.
  bool is_auto_width = true;
  /// Frames narrower than a pixel are drawn as runs; the embedded tree has their details.
  bool merges_narrow = false;
  std::string order = "alphabetical: the x-axis is not time";  ///< of frames, left to right
  bool is_html = false;             ///< an HTML document with the SVG in it
  bool is_timeline = false;         ///< the x-axis is time
  double min_width = 0.1;           ///< pixels; the script does not draw narrower frames
  double factor = 1;                ///< the script multiplies the counts it shows by it
  std::string summary;              ///< of the profile, for readers who cannot see the flame graph
  std::vector<LegendEntry> legend;  ///< shown if the geometry has room for it
  bool labels_root = true;          ///< otherwise only the root's tooltip has its name
  bool cuts_title = true;           ///< if it is wider than the page; otherwise it is cut off
  std::string left_out;  ///< "7 of 9 levels are not drawn": only the script draws them; empty: none
  std::string notes;     ///< a comment in the file; empty: none
  std::vector<Attribute> facts;  ///< about the recording; the script shows them
  /// The encoding that the file declares.  Unless it is UTF-8, characters beyond ASCII are written
  /// as references, so that every encoding that extends ASCII is correct.
  std::string encoding = "UTF-8";
};

/// User-defined title, attributes and link of the frames of one name.
struct FrameExtra {
  std::string title;             ///< instead of name and detail; empty: none
  std::vector<Attribute> group;  ///< of the element around the frame
  std::vector<Attribute> link;   ///< of the link around the frame; empty: no link
};

/// One rectangle.
struct Frame {
  std::string_view name;         ///< untrusted bytes
  std::string_view detail;       ///< "1,234 samples, 12.34%"
  std::string_view label_end{};  ///< follows the name in the label only
  std::string_view share{};      ///< the same, if the label has room for all of it
  Rgb fill{};
  std::uint32_t depth = 0;
  double left = 0, right = 0;     ///< edges, in pixels
  std::string_view start, count;  ///< decimal numbers: the exact edges, in counts
  const FrameExtra* extra = nullptr;
  bool is_tail_call = false;  ///< its edge is dashed
};

/// Writes a page piece by piece.
class PageWriter {
 public:
  /// Both must outlive the writer.
  PageWriter(const PageStyle& style, Output& out) : style_(style), out_(out) {}

  /// Writes everything before the first frame.
  void begin();
  /// True if a frame with these edges must be drawn by narrow_frame(), not by frame().
  [[nodiscard]] bool is_narrow(double left, double right) const noexcept {
    return style_.merges_narrow && right - left < 1;
  }
  /// The caller must write frames depth first, callers before callees, the root first.
  void frame(const Frame& frame);
  /// Writes a static frame in the last row, which replaces all frames there and beyond.
  void deeper_frame(double left, double right, std::string_view label);
  void narrow_frame(const NarrowRuns::Frame& frame) { narrow_.add(frame, style_.geometry); }
  /// Sets what the script reads: the call tree, in the format of painting/embed.h, and its times,
  /// in that of painting/times.h.  Both may be empty.  Called once, before end().
  void embed(std::string_view tree, std::string_view times) {
    tree_ = tree;
    times_ = times;
  }
  /// Writes everything after the last frame.
  void end();

  /// Writes a whole page that shows only `message`.
  void error_page(std::string_view message);

  /// Number of characters that were not valid in XML and became U+FFFD.
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }

 private:
  void open_html();
  void open_document(double height);
  void close_document();
  void background();
  void notes();
  void head();
  void legend();
  void bar();
  void styles();
  void facts();
  void embedded(std::string_view kind, std::string_view bytes);
  void text(std::string_view start, double y, std::string_view content);
  void attribute(std::string_view name, std::string_view value);
  void attribute(std::string_view name, double value);
  void escaped(std::string_view text);
  /// Writes a frame's rectangle and label.
  void box(std::uint32_t depth, double left, double right, Rgb fill, std::string_view name);
  void open_link(const FrameExtra* extra);
  void open_group(const Frame& frame);
  [[nodiscard]] bool is_ascii() const { return style_.encoding != "UTF-8"; }

  const PageStyle& style_;
  Output& out_;
  std::string text_;  ///< collects output that is written at once
  NarrowRuns narrow_;
  std::string_view tree_, times_;
  std::uint64_t replaced_ = 0;
};

/// True if an element of the page itself has this id.
bool is_page_id(std::string_view id);

/// Cuts `name` to fit `width` pixels.  Returns it whole, with its end replaced by "..", or
/// empty if not even three characters fit.
std::string fitted_label(std::string_view name, double width, const Geometry& geometry);

}  // namespace pe::painting
