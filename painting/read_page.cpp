// SPDX-License-Identifier: MIT
#include "painting/read_page.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <limits>
#include <span>

#include "base/characters.h"
#include "base/io/compression.h"
#include "painting/embed.h"
#include "painting/svg/escape.h"

namespace pe::painting {
namespace {

/// The largest expanded tree: some 25 million nodes.
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

/// Bounds-checked reads.  After the first that fails, all return zeros or nothing.
class TreeReader {
 public:
  explicit TreeReader(std::string_view bytes) : left_(bytes) {}

  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  void fail() noexcept {
    has_failed_ = true;
    left_ = {};
  }

  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) {
      fail();
      return {};
    }
    const auto taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  /// Reads a LEB128 number.
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty())
        return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= std::uint64_t{bits & 0x7FU} << shift;
      if (bits < 0x80)
        return value;
    }
    fail();
    return 0;
  }

  void skip_numbers(std::uint64_t count) {
    for (; count > 0 && !has_failed_; --count)
      number();
  }

  /// Returns `size` numbers below `limit`, which are in planes.
  std::vector<std::uint32_t> planes(std::size_t size, std::uint64_t limit) {
    std::vector<std::uint32_t> values(size);
    for (unsigned shift = 0; shift == 0 || (limit - 1) >> shift != 0; shift += 8) {
      const std::string_view plane = take(size);
      if (has_failed_)
        return {};
      for (std::size_t i = 0; i < size; ++i)
        values[i] |= std::uint32_t{static_cast<unsigned char>(plane[i])} << shift;
    }
    if (std::ranges::any_of(values, [limit](std::uint32_t value) { return value >= limit; }))
      fail();
    return values;
  }

 private:
  std::string_view left_;
  bool has_failed_ = false;
};

/// The rest of the head, of which only some parts are kept.
struct Head {
  std::uint64_t names = 0, nodes = 0;
};

Head read_head(TreeReader& reader, PageTree& tree) {
  constexpr std::uint64_t kDifferences = 1, kCompared = 4, kRepeats = 8, kReversed = 16, kAll = 31;
  constexpr std::uint64_t kVersion = 1, kMostDecimals = 9;
  if (reader.number() != kVersion)
    reader.fail();
  const std::uint64_t flags = reader.number();
  const std::uint64_t decimals = reader.number();
  if (flags > kAll || decimals > kMostDecimals)
    reader.fail();
  tree.decimals = static_cast<unsigned>(decimals);
  tree.is_comparison = (flags & (kDifferences | kCompared)) != 0;
  tree.folds_recursion = (flags & kRepeats) != 0;
  tree.is_reversed = (flags & kReversed) != 0;
  const Head head{.names = reader.number(), .nodes = reader.number()};
  reader.number();  // what the width represents
  tree.smallest = reader.number();
  tree.left_out = reader.number();
  return head;
}

void read_names(TreeReader& reader, std::uint64_t count, PageTree& tree) {
  std::string_view texts = reader.take(reader.number());
  if (count == 0 || count > texts.size())
    return reader.fail();
  tree.names.reserve(count);
  while (!texts.empty()) {
    const auto end = texts.find('\n');
    if (end == texts.npos)
      return reader.fail();
    tree.names.push_back(texts.substr(0, end));
    texts.remove_prefix(end + 1);
  }
  if (tree.names.size() != count || !tree.names[0].empty())
    return reader.fail();
  const std::uint64_t colors = reader.number();
  if (colors > reader.left() / 3)
    return reader.fail();
  reader.take(3 * colors);
  if (count > 1)
    reader.planes(count - 1, std::max<std::uint64_t>(colors, 1));
}

/// Replaces the numbers of children, which are in place of the depths, by the depths.
void link(TreeReader& reader, PageTree& tree) {
  std::vector<std::uint32_t> waiting;  // children to come, of each node on the path
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    while (!waiting.empty() && waiting.back() == 0)
      waiting.pop_back();
    if (waiting.empty() != (i == 0))
      return reader.fail();
    if (i > 0)
      --waiting.back();
    const std::uint32_t children = tree.nodes[i].depth;
    tree.nodes[i].depth = static_cast<std::uint32_t>(waiting.size());
    waiting.push_back(children);
  }
  if (std::ranges::any_of(waiting, [](std::uint32_t left) { return left > 0; }))
    reader.fail();
}

void read_nodes(TreeReader& reader, const Head& head, PageTree& tree) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (head.nodes == 0 || head.nodes > std::min<std::uint64_t>(reader.left(), kMost))
    return reader.fail();
  const std::string_view shapes = reader.take(head.nodes);
  const std::vector<std::uint32_t> names = reader.planes(head.nodes, head.names);
  if (reader.has_failed())
    return;
  tree.nodes.reserve(head.nodes);
  for (std::size_t i = 0; i < head.nodes; ++i) {
    const unsigned shape = static_cast<unsigned char>(shapes[i]) & kEscape;
    const std::uint64_t children = shape < kEscape ? shape : kEscape + reader.number();
    if (children > kMost)
      return reader.fail();
    tree.nodes.push_back({.name = names[i], .depth = static_cast<std::uint32_t>(children)});
  }
  for (std::size_t i = 0; i < head.nodes; ++i) {
    const unsigned shape = static_cast<unsigned char>(shapes[i]) >> 4U;
    tree.nodes[i].self = shape < kEscape ? shape : kEscape + reader.number();
  }
  link(reader, tree);
}

}  // namespace

std::optional<PageTree> read_tree(std::string bytes) {
  PageTree tree;
  tree.bytes = std::move(bytes);
  tree.bytes.reserve(64);  // never within the object itself: views must survive a move
  TreeReader reader(tree.bytes);
  const Head head = read_head(reader, tree);
  if (tree.is_comparison && !reader.has_failed()) {  // its other parts are not needed
    tree.nodes.emplace_back();
    return tree;
  }
  read_names(reader, head.names, tree);
  if (!reader.has_failed())
    read_nodes(reader, head, tree);
  if (reader.has_failed())
    return std::nullopt;
  return tree;
}

namespace {

/// Returns the part of `text` between the next `begin` and the next `end`, and removes both from
/// `text`.  Returns nullopt if either is missing.
std::optional<std::string_view> take_between(std::string_view& text, std::string_view begin,
                                             std::string_view end) {
  const auto start = text.find(begin);
  if (start == kNone)
    return std::nullopt;
  const auto stop = text.find(end, start + begin.size());
  if (stop == kNone)
    return std::nullopt;
  const auto part = text.substr(start + begin.size(), stop - start - begin.size());
  text.remove_prefix(stop + end.size());
  return part;
}

std::string unknown_page(std::string_view page) {
  constexpr std::string_view kAgain = "only boxes, no profile (fold the recording again)";
  constexpr std::size_t kHead = 64UL * 1024;
  const std::string_view head = page.substr(0, kHead);
  if (head.find("jonhoo/inferno") != kNone)
    return std::string("a flame graph of inferno, which has ").append(kAgain);
  if (head.find("init(evt)") != kNone)
    return std::string("a flame graph of flamegraph.pl, which has ").append(kAgain);
  return "a drawing that stackpipe did not make";
}

/// Has the page the parts that no editor would keep in this form?
bool is_as_written(std::string_view svg) {
  return svg.starts_with(
             R"(<svg version="1.1" xmlns="http://www.w3.org/2000/svg" class="flamegraph" )") &&
         svg.find("\n<g id=\"bar\">") != kNone && svg.find("]]></script>\n</svg>") != kNone;
}

/// Tells why a page of ours has no tree that can be read.
std::string problem_of(std::string_view svg, bool has_tree) {
  const bool is_whole = svg.find("</svg>") != kNone;
  if (svg.substr(0, svg.find('>')).find(R"(class="flamegraph live")") != kNone)
    return "a view saved from a flame graph, which has no profile (use the file of the flame "
           "graph)";
  if (!is_whole)
    return "a flame graph that is cut off: its profile is incomplete";
  if (has_tree)
    return "a flame graph whose profile was edited or damaged, or is larger than 64 MiB";
  if (svg.find("<g id=\"frames\"") == kNone)
    return "a page with an error message, not a flame graph";
  if (!is_as_written(svg))
    return "a flame graph that was edited: its profile is missing";
  return "a flame graph without its profile (it was drawn with --embed none, a small --embed, or "
         "--nameattr)";
}

void read_facts(std::string_view svg, PageProfile& profile) {
  if (const auto count_name = take_between(svg, "data-countname=\"", "\""))
    profile.count_name = unescaped(*count_name);
  auto text = take_between(svg, "<metadata class=\"facts\">", "</metadata>");
  while (text && !text->empty()) {
    const std::string_view line = text->substr(0, text->find('\n'));
    text->remove_prefix(std::min(line.size() + 1, text->size()));
    if (const auto colon = line.find(": "); colon != kNone)
      profile.facts.emplace_back(line.substr(0, colon), unescaped(line.substr(colon + 2)));
  }
}

std::optional<PageTree> unpack(std::string_view svg, bool& has_tree) {
  std::string compressed;
  while (const auto piece = take_between(svg, "<metadata class=\"tree\">", "</metadata>")) {
    has_tree = true;
    if (!append_from_base64(compressed, *piece))
      return std::nullopt;
  }
  if (!has_tree)
    return std::nullopt;
  auto bytes = inflate_all(std::as_bytes(std::span(compressed)), kMostBytes);
  return bytes ? read_tree(std::move(*bytes)) : std::nullopt;
}

}  // namespace

bool looks_like_page(std::string_view head) {
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  constexpr std::string_view kStarts[] = {"<?xml", "<svg", "<!doctype", "<html", "<!--"};
  const auto starts_with = [head](std::string_view start) {
    return head.size() >= start.size() &&
           std::equal(start.begin(), start.end(), head.begin(), [](char a, char b) {
             return a == std::tolower(static_cast<unsigned char>(b));
           });
  };
  return std::ranges::any_of(kStarts, starts_with) && head.find("<svg") != kNone;
}

PageProfile read_page(std::string_view page) {
  PageProfile profile;
  // What comes before this tag, such as the user's notes, contains no "<".
  const std::string_view svg = page.substr(std::min(page.find("<svg"), page.size()));
  if (svg.substr(0, svg.find('>')).find("class=\"flamegraph") == kNone) {
    profile.problem = unknown_page(page);
    return profile;
  }
  bool has_tree = false;
  profile.tree = unpack(svg, has_tree);
  if (!profile.tree)
    profile.problem = problem_of(svg, has_tree);
  else if (svg.find("</svg>") == kNone)
    profile.problem = "the page is cut off after its profile";
  read_facts(svg, profile);
  return profile;
}

}  // namespace pe::painting
