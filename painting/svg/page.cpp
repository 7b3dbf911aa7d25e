// SPDX-License-Identifier: MIT
#include "painting/svg/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/characters.h"
#include "base/utf8.h"
#include "page_assets.h"
#include "painting/svg/escape.h"

namespace pe::painting {
namespace {

constexpr std::string_view kEllipsis = "\u2026";

/// Returns `text`, or if it has more than `limit` characters, as much of it as leaves room for
/// `ending`, which is ASCII or a single character.
std::string cut_text(std::string_view text, double limit, std::string_view ending) {
  const auto most = static_cast<std::size_t>(std::clamp(limit, 2.0, 1e9));
  const std::size_t kept = most - (ending == kEllipsis ? 1 : ending.size());
  std::size_t characters = 0;
  std::size_t cut = 0;  // bytes of the first `kept` characters
  for (std::string_view left = text; !left.empty(); ++characters) {
    if (characters == kept)
      cut = text.size() - left.size();
    if (characters == most)
      return std::string(text.substr(0, cut)).append(ending);
    take_code_point(left);
  }
  return std::string(text);
}

constexpr double kTextInset = 3;  // pixels between a frame's edge and its label

std::string color_text(Rgb c) { return fmt::format("rgb({},{},{})", c.r, c.g, c.b); }

/// Separates adjacent dashes, which XML forbids in comments (XML 1.0, 2.5).
std::string in_comment(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  for (const char c : text) {
    if (c == '-' && kept.ends_with('-'))
      kept += ' ';
    kept += c;
  }
  return kept;
}

constexpr std::string_view kHowToSeeAll = "open this file in a browser to see all";

constexpr std::string_view kReading =
    "Every box is a function; the box on its root side is its caller. The width of a box is its "
    "share of all {}. The order from left to right is {}.";

}  // namespace

bool is_page_id(std::string_view id) {
  // Ids that this file and the page's script use.
  constexpr std::string_view kIds[] = {
      "app",       "background", "bar",    "canvas",  "cursor", "compare",  "details",
      "frames",    "head",       "heavy",  "help",    "holder", "hover",    "invert",
      "keys",      "left-out",   "legend", "matched", "menu",   "middle",   "more",
      "page-desc", "page-title", "path",   "profile", "same",   "scroller", "search",
      "side",      "subtitle",   "table",  "timemap", "times",  "title",    "titles",
      "tools",     "unzoom",     "voice",
  };
  return std::find(std::begin(kIds), std::end(kIds), id) != std::end(kIds);
}

std::string fitted_label(std::string_view name, double width, const Geometry& geometry) {
  const double fitting = width / (geometry.font_size * geometry.font_width);
  return fitting >= 3 ? cut_text(name, fitting, "..") : "";
}

void PageWriter::escaped(std::string_view text) {
  replaced_ += append_escaped(text_, text, is_ascii());
}

void PageWriter::attribute(std::string_view name, std::string_view value) {
  text_.append(" ").append(name).append("=\"");
  escaped(value);
  text_ += '"';
}

void PageWriter::attribute(std::string_view name, double value) {
  text_.append(" ").append(name).append("=\"");
  append_tenths(text_, tenths(value));
  text_ += '"';
}

void PageWriter::notes() {
  if (style_.notes.empty())
    return;
  text_ += "<!-- NOTES:";
  std::string_view separator = " ";
  const std::string notes = in_comment(style_.notes) + "\n";
  for (std::string_view left = notes; const auto line = take_until(left, '\n'); separator = "\n") {
    text_ += separator;
    replaced_ += append_clean(text_, *line, is_ascii());
  }
  text_ += " -->\n";
}

/// The SVG has style and script as CDATA, as in an SVG document: HTML's parser knows CDATA in SVG.
void PageWriter::open_html() {
  text_ += "<!DOCTYPE html>\n<html lang=\"en\" class=\"flamegraph-page\"><head><meta";
  attribute("charset", style_.encoding);
  text_ += "/><title>";
  append_escaped(text_, style_.title, is_ascii());  // not counted: the SVG's title is
  text_ +=
      "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<style>body { margin: 0; } body > svg { display: block; ";
  text_ += style_.is_auto_width ? "min-height: 100vh; }" : "}";
  text_ += "</style></head>\n<body>\n";
  notes();
}

void PageWriter::close_document() {
  text_ += style_.is_html ? "</svg>\n</body></html>\n" : "</svg>\n";
  out_.write(text_);
  text_.clear();
}

void PageWriter::open_document(double height) {
  const double width = style_.geometry.width;
  if (style_.is_html) {
    open_html();
  } else {
    text_ += "<?xml version=\"1.0\"";
    attribute("encoding", style_.encoding);
    text_ += " standalone=\"yes\"?>\n";
    notes();
  }
  text_ +=
      "<svg version=\"1.1\" xmlns=\"http://www.w3.org/2000/svg\" class=\"flamegraph\" "
      "role=\"group\" aria-labelledby=\"page-title\" aria-describedby=\"page-desc\"";
  if (style_.is_html)
    text_ += R"( data-alone="")";  // nothing else is in the document
  if (style_.is_auto_width)
    text_ += R"( width="100%" preserveAspectRatio="xMidYMin meet")";
  else
    attribute("width", width);
  attribute("height", height);
  text_ += " viewBox=\"0 0 ";
  append_tenths(text_, tenths(width));
  text_ += ' ';
  append_tenths(text_, tenths(height));
  text_ += '"';
  attribute("font-family", style_.font_family);
  attribute("font-size", style_.geometry.font_size);
  text_ += ">\n<title id=\"page-title\">";
  escaped(style_.title);
  text_ += "</title>\n<desc id=\"page-desc\">";
  escaped(fmt::format(kReading, style_.whole_name, style_.order));
  if (!style_.left_out.empty())
    text_ += fmt::format(" The tallest towers are cut: {}; {}.", style_.left_out, kHowToSeeAll);
  if (!style_.summary.empty()) {
    text_ += ' ';
    append_escaped(text_, style_.summary,
                   is_ascii());  // not counted: its names are names of frames
  }
  text_ += "</desc>\n";
  styles();
  background();
}

void PageWriter::background() {
  if (!style_.background) {
    text_ += "<rect id=\"background\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    return;
  }
  text_ += R"(<defs><linearGradient id="background" x1="0" y1="0" x2="0" y2="1">)";
  text_ += fmt::format(R"(<stop offset="5%" stop-color="{}"/><stop offset="95%" stop-color="{}"/>)",
                       color_text(style_.background->top), color_text(style_.background->bottom));
  text_ +=
      "</linearGradient></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"url(#background)\"/>\n";
}

/// The dark rules come last, so they override the others where they apply.
void PageWriter::styles() {
  text_.append("<style><![CDATA[\n").append(kPageStyle);
  if (style_.theme == Theme::kAuto)
    text_.append("@media (prefers-color-scheme: dark) {\n").append(kPageDarkStyle).append("}\n");
  else if (style_.theme == Theme::kDark)
    text_.append(kPageDarkStyle);
  text_ += "]]></style>\n";
}

/// `start`: the attributes that give its horizontal position.
void PageWriter::text(std::string_view start, double y, std::string_view content) {
  text_.append("<text ").append(start);
  attribute("y", y);
  text_ += '>';
  escaped(content);
  text_ += "</text>\n";
}

/// Writes the title.  The script replaces it by one with tools beside it.
void PageWriter::head() {
  const Geometry& g = style_.geometry;
  text_ += R"(<g id="head">)";
  // Letters of the title are 1.42 times as large as the others, and bold.
  const double fitting = g.usable_width() / (g.font_size * g.font_width * 1.6);
  text(R"(id="title" x="50%")", g.title_y(),
       style_.cuts_title ? cut_text(style_.title, fitting, kEllipsis) : style_.title);
  text_ += "</g>\n";
}

/// Writes the legend in one line that the browser centres: squares and the meanings of colours.
void PageWriter::legend() {
  text_ += R"(<text id="legend" x="50%")";
  attribute("y", style_.geometry.legend_y());
  text_ += '>';
  for (const LegendEntry& entry : style_.legend) {
    const std::string color = color_text(entry.color);
    text_ += "<tspan dx=\"1em\"";
    if (entry.sample == LegendEntry::Sample::kFilled)
      attribute("fill", color);
    else
      text_ += fmt::format(R"( fill="none" stroke="{}" stroke-width="1.5")", color);
    if (entry.sample == LegendEntry::Sample::kDashed)
      attribute("stroke-dasharray", "3 1.5");
    text_ += ">\u25A0</tspan><tspan dx=\"0.4em\">";
    escaped(entry.meaning);
    text_ += "</tspan>";
  }
  text_ += "</text>\n";
}

/// Writes the bar below the frames: how to read the graph.
void PageWriter::bar() {
  const Geometry& g = style_.geometry;
  text_ += R"(<g id="bar">)";
  std::string side = "x=\"";
  append_tenths(side, tenths(Geometry::kSideMargin));
  const std::string hint = fmt::format("Width is the share of all {}; the x-axis is {}time.",
                                       style_.whole_name, style_.is_timeline ? "" : "not ");
  text(R"(id="details" class="hint" )" + side + '"', g.details_y(), hint);
  if (!style_.left_out.empty()) {
    side = "dx=\"";
    append_tenths(side, -tenths(Geometry::kSideMargin));
    const double hint_width = static_cast<double>(hint.size()) * g.font_size * g.font_width;
    text(R"(id="left-out" x="100%" )" + side + '"', g.details_y(),
         fitted_label(fmt::format("{}: {}", style_.left_out, kHowToSeeAll),
                      g.usable_width() - hint_width, g));
  }
  text_ += "</g>\n";
}

/// The attributes of the frames' group hold the values that the script needs.
void PageWriter::begin() {
  const Geometry& g = style_.geometry;
  open_document(g.height());
  if (g.has_subtitle)
    text(R"(id="subtitle" x="50%")", g.subtitle_y(), style_.subtitle);
  if (g.has_legend)
    legend();
  text_ += R"(<g id="frames")";
  attribute("data-margin", Geometry::kSideMargin);
  attribute("data-width", g.usable_width());
  attribute("data-inset", kTextInset);
  attribute("data-top", g.top_margin());
  attribute("data-first", g.inverted ? g.frame_y(0) : g.top_margin());
  attribute("data-row", g.frame_height);
  text_ += fmt::format(R"( data-levels="{}" data-minwidth="{}" data-factor="{}")", g.levels,
                       style_.min_width, style_.factor);
  if (g.inverted)
    text_ += R"( data-inverted="")";
  if (style_.is_auto_width)
    text_ += R"( data-autowidth="")";
  attribute("data-countname", style_.count_name);
  attribute("data-nametype", style_.name_type);
  text_ += ">\n";
}

void PageWriter::box(std::uint32_t depth, double left, double right, Rgb fill,
                     std::string_view name) {
  const Geometry& g = style_.geometry;
  const long long x = tenths(left);
  text_ += "<rect x=\"";
  append_tenths(text_, x);
  text_ += "\" width=\"";
  append_tenths(text_, tenths(right) - x);
  text_ += '"';
  attribute("y", g.frame_y(depth));
  attribute("height", g.frame_height - 1);
  fmt::format_to(std::back_inserter(text_), " fill=\"rgb({},{},{})\"/>", fill.r, fill.g, fill.b);
  const std::string label = fitted_label(name, right - left, g);
  if (label.empty())
    return;
  text_ += "<text";
  attribute("x", static_cast<double>(x) / 10 + kTextInset);
  // Centres the letters in the frame, not the line.
  attribute("y", g.frame_y(depth) + (g.frame_height - 1) / 2 + g.font_size * 0.36);
  text_ += '>';
  append_escaped(text_, label, is_ascii());  // not counted: those of the <title> are
  text_ += "</text>";
}

void PageWriter::open_link(const FrameExtra* extra) {
  if (extra == nullptr || extra->link.empty())
    return;
  text_ += "<a";
  for (const Attribute& a : extra->link)
    attribute(a.name, a.value);
  text_ += '>';
}

/// Writes the tags before the frame's rectangle.
void PageWriter::open_group(const Frame& frame) {
  const FrameExtra* extra = frame.extra;
  open_link(extra);
  text_ += "<g";
  std::string classes = wants_white_text(frame.fill) ? "dark" : "";
  if (frame.is_tail_call)
    classes += classes.empty() ? "tail" : " tail";
  if (extra != nullptr) {
    for (const Attribute& a : extra->group) {
      if (a.name == "class")
        classes += (classes.empty() ? "" : " ") + a.value;
      else
        attribute(a.name, a.value);
    }
  }
  if (!classes.empty())
    attribute("class", classes);
  fmt::format_to(std::back_inserter(text_), " data-at=\"{} {} {}\"", frame.start, frame.count,
                 frame.depth);
  const bool has_title = extra != nullptr && !extra->title.empty();
  if (has_title)  // the script cannot read the name from the title
    attribute("data-name", frame.name);
  text_ += "><title>";
  if (has_title) {
    escaped(extra->title);
  } else {
    escaped(frame.name);
    text_ += " (";
    escaped(frame.detail);
    text_ += ')';
  }
  text_ += "</title>";
}

void PageWriter::frame(const Frame& frame) {
  open_group(frame);
  std::string label(frame.depth > 0 || style_.labels_root ? frame.name : "");
  label += frame.label_end;
  if (!frame.share.empty()) {
    const std::string whole = fmt::format("{} \u00b7 {}", label, frame.share);
    if (fitted_label(whole, frame.right - frame.left, style_.geometry) == whole)
      label = whole;
  }
  box(frame.depth, frame.left, frame.right, frame.fill, label);
  text_ += frame.extra != nullptr && !frame.extra->link.empty() ? "</g></a>\n" : "</g>\n";
  out_.write(text_);
  text_.clear();
}

/// Writes a line "key: value" for each fact.
void PageWriter::facts() {
  if (style_.facts.empty())
    return;
  text_ += "<metadata class=\"facts\">";
  for (const Attribute& fact : style_.facts) {
    text_.append(fact.name).append(": ");
    escaped(fact.value);
    text_ += '\n';
  }
  text_ += "</metadata>\n";
}

void PageWriter::deeper_frame(double left, double right, std::string_view label) {
  constexpr Rgb kFill{222, 222, 222};
  const std::uint32_t depth = style_.geometry.levels - 1;
  if (is_narrow(left, right)) {
    narrow_frame({.depth = depth, .left = left, .right = right, .fill = kFill});
    return;
  }
  text_ += fmt::format(R"(<g class="deeper"><title>{}: {}</title>)", label, kHowToSeeAll);
  box(depth, left, right, kFill, label);
  text_ += "</g>\n";
  out_.write(text_);
  text_.clear();
}

/// Writes data in pieces, because parsers reject a text of more than 10 million characters.
void PageWriter::embedded(std::string_view kind, std::string_view bytes) {
  constexpr std::size_t kPiece = 6'000'000;  // a multiple of 3: no padding inside
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    text_ += fmt::format(R"(<metadata class="{}">)", kind);
    append_base64(text_, bytes.substr(at, kPiece));
    text_ += "</metadata>\n";
    out_.write(text_);
    text_.clear();
  }
}

void PageWriter::end() {
  narrow_.append_paths(text_, style_.geometry);
  text_ += "</g>\n";
  head();
  bar();
  facts();
  embedded("tree", tree_);
  embedded("times", times_);
  text_.append("<script><![CDATA[\n").append(kPageScript).append("]]></script>\n");
  close_document();
}

void PageWriter::error_page(std::string_view message) {
  const double height = 5 * style_.geometry.font_size;
  open_document(height);
  text(R"(id="title" x="50%")", height / 2, message);
  close_document();
}

}  // namespace pe::painting
