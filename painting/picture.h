// Turns rectangles into a page, for all tools that draw call trees.
//
// A tool defines how its frames look (FrameLooks).  Positions, runs of narrow frames and the
// embedded tree are common to all tools.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "painting/embed.h"
#include "painting/layout.h"
#include "painting/svg/page.h"

namespace pe::painting {

/// How a tool shows its frames.  The root is called "all".
class FrameLooks {
 public:
  FrameLooks() = default;
  FrameLooks(const FrameLooks&) = delete;
  FrameLooks& operator=(const FrameLooks&) = delete;
  FrameLooks(FrameLooks&&) = delete;
  FrameLooks& operator=(FrameLooks&&) = delete;
  virtual ~FrameLooks() = default;

  /// Called for every frame that is drawn, in the order of the layout.
  virtual Rgb color(NodeId node) = 0;
  /// The name as shown; its bytes are untrusted.
  [[nodiscard]] virtual std::string_view name(NodeId node) const = 0;
  /// How many frames of direct recursion the node represents.
  [[nodiscard]] virtual std::uint32_t repeats(NodeId /*node*/) const { return 1; }
  /// Whether the function was gone when the function that it called ran.
  /// Do the labels of wide boxes have their shares of the whole width?
  [[nodiscard]] virtual bool shows_shares() const { return false; }
  [[nodiscard]] virtual bool is_tail_call(NodeId /*node*/) const { return false; }
  /// The text in brackets after the name: "1,234 samples, 12.34%".
  [[nodiscard]] virtual std::string detail(const Box& box) const = 0;
  /// Title, attributes and link of the frame; null if it has none of its own.
  [[nodiscard]] virtual const FrameExtra* extra(NodeId node) const = 0;
};

/// Returns no bytes if the tree would leave out frames wider than a pixel of `layout`:
/// the script would draw fewer frames than the page has.
EmbeddedTree embed_for_page(const CallTree& tree, const Layout& layout, const EmbedRequest& request,
                            double usable_width);

/// Returns " 12 frames counted fewer than 3 samples are not in this file.", or an empty text.
std::string left_out_text(const EmbeddedTree& embedded, double factor, std::string_view count_name);

/// Sets the levels of `style`.  With an embedded tree, from which the script draws everything, the
/// file draws at most about four screens.
void set_levels(Layout& layout, const EmbeddedTree& embedded, PageStyle& style);

/// Writes the page.  Returns how many characters of names are not valid in XML.
std::uint64_t write_page(const Layout& layout, const PageStyle& style, FrameLooks& looks,
                         const EmbeddedTree& embedded, Output& out);

}  // namespace pe::painting
