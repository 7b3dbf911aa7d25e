// Merges any folded texts.  If they are in order, so is the output.  The output has each stack
// once, and the counts add up to those of the input.  Texts that were sorted before are always in
// order.
//
// Input: texts, with a NUL between them.
// SPDX-License-Identifier: MIT
#include "stackfold/strip_names.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "folded/ordered_stacks.h"
#include "fuzz/require.h"
#include "support/memory_input.h"

using pe::testing::require;

using namespace pe;

namespace {

std::vector<std::string> texts_of(std::string_view all) {
  constexpr std::size_t kMostTexts = 8;
  std::vector<std::string> texts;
  while (texts.size() < kMostTexts && !all.empty()) {
    const std::string_view text = all.substr(0, all.find('\0'));
    all.remove_prefix(std::min(all.size(), text.size() + 1));
    texts.emplace_back(text);
  }
  return texts;
}

/// Returns the number of stacks in the output.
std::uint64_t check_merge(const std::vector<std::string>& texts, bool are_ordered) {
  std::vector<Input> inputs;
  for (const std::string& text : texts)
    inputs.push_back(testing::memory_input(text));
  folded::SortedMerge merge(std::move(inputs));
  std::string last;
  std::uint64_t out_of_order = 0;
  for (bool is_first = true; const auto line = merge.next(); is_first = false) {
    out_of_order += !is_first && line->stack <= last ? 1 : 0;
    last = line->stack;
  }
  require((merge.out_of_order() == 0) == merge.first_out_of_order().empty());
  if (merge.out_of_order() == 0)
    require(out_of_order == 0);
  if (are_ordered)
    require(merge.out_of_order() == 0);
  const folded::MergeTotals& totals = merge.totals();
  require(totals.stacks <= totals.lines);
  if (!merge.saturated())
    require(totals.read == totals.written);
  return totals.stacks;
}

std::string sorted(const std::string& text) {
  Input input = testing::memory_input(text);
  folded::FoldedReader reader(std::move(input));
  folded::OrderedStacks stacks;
  while (const auto line = reader.next())
    stacks.add(*line);
  folded::OrderedStacks::Reader in_order(stacks);
  std::string out;
  while (const auto line = in_order.next())
    folded::append_folded_line(out, *line);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  std::vector<std::string> texts = texts_of({data, size});
  const std::uint64_t stacks = check_merge(texts, false);
  for (std::string& text : texts)
    text = sorted(text);
  require(check_merge(texts, true) <= stacks);
  return 0;
}
