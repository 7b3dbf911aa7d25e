// Draws any folded text.  The page is well formed, whatever the names contain, and no part of a
// name becomes an element or an attribute.
//
// Input: a byte that chooses options; the text.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "flamesvg/flamesvg.h"
#include "fuzz/require.h"
#include "support/run_tool.h"

using pe::testing::require;

namespace {

/// Removes and returns the text before `end`; also removes `end`.
std::string_view take_to(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  require(at != std::string_view::npos);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

/// Checks text, or the value of an attribute (XML 1.0, 2.2 and 4.1).
void check_characters(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    require(byte >= ' ' || byte == '\n' || byte == '\t');
    require(byte != '<');
    if (byte != '&')
      continue;
    constexpr std::array<std::string_view, 6> kEntities{"&lt;",   "&gt;",   "&amp;",
                                                        "&quot;", "&apos;", "&#"};
    require(std::any_of(kEntities.begin(), kEntities.end(), [&](std::string_view entity) {
      return text.substr(i).starts_with(entity);
    }));
  }
}

/// Checks `name a="x" b="y"`: a page may have only these elements.
std::string_view check_tag(std::string_view tag) {
  const std::string_view name = tag.substr(0, tag.find_first_of(" \n/"));
  constexpr std::array<std::string_view, 27> kElements{
      "html",  "head",  "body",

      "svg",   "defs",  "linearGradient", "stop", "style",    "script", "rect",          "text",
      "g",     "title", "path",           "a",    "metadata", "desc",   "clipPath",      "use",
      "tspan", "line",  "symbol",         "meta", "image",    "filter", "feColorMatrix", "polygon"};
  require(std::find(kElements.begin(), kElements.end(), name) != kElements.end());
  tag.remove_prefix(name.size());
  for (auto quote = tag.find('"'); quote != std::string_view::npos; quote = tag.find('"')) {
    tag.remove_prefix(quote + 1);
    check_characters(take_to(tag, "\""));
  }
  return name;
}

void check_page(std::string_view page) {
  require(page.ends_with("</svg>\n") || page.ends_with("</svg>\n</body></html>\n"));
  std::vector<std::string_view> open;
  bool is_any = false;
  while (!page.empty()) {
    check_characters(page.substr(0, page.find('<')));
    page.remove_prefix(std::min(page.size(), page.find('<')));
    if (page.empty())
      break;
    page.remove_prefix(1);
    if (page.starts_with("?") || page.starts_with("!DOCTYPE")) {
      require(!is_any);
      take_to(page, ">");
    } else if (page.starts_with("!--")) {
      take_to(page, "-->");
    } else if (page.starts_with("![CDATA[")) {
      take_to(page, "]]>");
    } else if (page.starts_with("/")) {
      const std::string_view tag = take_to(page, ">").substr(1);
      require(!open.empty() && open.back() == tag);
      open.pop_back();
    } else {
      const std::string_view tag = take_to(page, ">");
      const std::string_view name = check_tag(tag);
      if (!tag.ends_with('/'))
        open.push_back(name);
    }
    is_any = true;
  }
  require(open.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0)
    return 0;
  const auto choice = static_cast<unsigned char>(data[0]);
  const std::string text(data + 1, size - 1);
  std::vector<std::string> args;
  if ((choice & 1) != 0)
    args.insert(args.end(), {"--colors", "java"});
  if ((choice & 2) != 0)
    args.emplace_back("--inverted");
  // The page also contains text from the user's options.
  const std::string line = text.substr(0, text.find_first_of(std::string_view("\n\0", 2)));
  if ((choice & 4) != 0)
    args.insert(args.end(), {"--title=" + line, "--countname=" + line, "--nametype=" + line});
  if ((choice & 8) != 0)
    args.emplace_back("--html");
  if ((choice & 16) != 0)
    args.emplace_back("--fold-recursion");
  const auto result = pe::testing::run_tool(pe::kFlamesvg, args, text);
  require(result.status == 0 || result.status == 1 || result.status == 2);
  if (result.status == 0 || !result.out.empty())
    check_page(result.out);
  return 0;
}
