// Embeds the tree of any folded text in a page.  Reading it back gives the same counts, whatever
// the limit.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "folded/folded_line.h"
#include "painting/embed.h"
#include "painting/times.h"
#include "painting/tree/tree_builder.h"
#include "support/unpacked_tree.h"

using namespace pe;

namespace {

painting::CallTree tree_of(std::string_view text) {
  painting::TreeBuilder builder;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = folded::parse_folded_line(text.substr(0, end)))
      builder.add(line->stack, line->count);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(builder).finish();
}

void check(const painting::CallTree& tree, std::uint64_t limit) {
  const std::vector<painting::Rgb> colors(tree.name_count(), painting::Rgb{1, 2, 3});
  const auto whole = tree.total(painting::kRoot);
  const auto embedded =
      painting::embed_tree(tree, {.whole = whole, .limit = limit, .colors = colors});
  if (embedded.bytes.empty())
    return;
  const auto back = testing::TreeUnpacker::unpack(embedded.bytes);
  // Rounding to the finest decimals may lose less than one tick for each node.
  const std::uint64_t wanted = painting::Ticks(tree, whole).of(whole);
  if (back.whole != wanted || back.nodes[0].total > wanted ||
      wanted - back.nodes[0].total > tree.size())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const painting::CallTree tree = tree_of(text);
  if (tree.saturated() || tree.total(painting::kRoot).is_zero())
    return 0;
  check(tree, UINT64_MAX);
  check(tree, std::uint64_t{data[0]} * 4);
  return 0;
}
