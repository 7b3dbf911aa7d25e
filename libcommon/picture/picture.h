// From rectangles to the page: what all pictures of call trees have in common.
//
// A tool says how its frames look (FrameLooks); places, runs of narrow frames and the
// embedded tree are the same everywhere.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "picture/embed.h"
#include "picture/layout.h"
#include "picture/svg/page.h"

namespace pe::picture {

/// What a tool shows of its frames.  The root is called "all".
class FrameLooks {
 public:
  FrameLooks() = default;
  FrameLooks(const FrameLooks&) = delete;
  FrameLooks& operator=(const FrameLooks&) = delete;
  FrameLooks(FrameLooks&&) = delete;
  FrameLooks& operator=(FrameLooks&&) = delete;
  virtual ~FrameLooks() = default;

  /// Of every frame that is drawn, in the order of the layout.
  virtual Rgb color(NodeId node) = 0;
  /// As it is shown; bytes of unknown origin.
  [[nodiscard]] virtual std::string_view name(NodeId node) const = 0;
  /// What stands in brackets behind the name: "1,234 samples, 12.34%".
  [[nodiscard]] virtual std::string detail(const Box& box) const = 0;
  /// Null: nothing more.
  [[nodiscard]] virtual const FrameExtra* extra(NodeId node) const = 0;
};

/// Without its tree, if the frames that are left of it were wider than a pixel of `layout`:
/// the script would make the picture poorer.
EmbeddedTree embed_for_page(const CallTree& tree, const Layout& layout, const EmbedRequest& request,
                            double usable_width);

/// " 12 frames counted fewer than 3 samples are not in this file.", or nothing.
std::string left_out_text(const EmbeddedTree& embedded, double factor, std::string_view count_name);

/// Writes the page; returns how many characters of names were not fit for XML.
std::uint64_t write_page(const Layout& layout, const PageStyle& style, FrameLooks& looks,
                         const EmbeddedTree& embedded, Output& out);

}  // namespace pe::picture
