// Compares two profiles of any text.  The root has the counts of the lines, the page is complete,
// the interval of a change beyond noise excludes 0, and folded lines can be read back.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flamediff/comparison.h"
#include "flamediff/flamediff.h"
#include "folded/folded_line.h"
#include "folded/folded_reader.h"
#include "fuzz/require.h"
#include "support/run_tool.h"

using pe::testing::require;

using namespace pe;

namespace {

void add_lines(std::string_view text, std::size_t side, painting::TreeBuilder& builder,
               folded::Count& total) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = folded::parse_folded_line(text.substr(0, end))) {
      builder.add_to(side, line->stack, line->count);
      static_cast<void>(total.add(line->count));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void check_comparison(std::string_view before, std::string_view after, bool is_absolute) {
  painting::TreeBuilder builder;
  folded::Count totals[2];
  add_lines(before, 0, builder, totals[0]);
  add_lines(after, 1, builder, totals[1]);
  const auto all = std::move(builder).finish_union(2);
  flamediff::Options options;
  options.before = options.after = {"x"};
  options.is_absolute = is_absolute;
  if (is_absolute && before.size() % 2 == 0)
    options.work = {1.0 + static_cast<double>(before.size()), 0.5};
  const auto comparison = flamediff::compare(all, options);
  if (!all.tree.saturated())
    require(comparison.totals.before == totals[0] && comparison.totals.after == totals[1]);
  for (const painting::Change& change : comparison.nodes.changes) {
    require(change.interval.low <= change.interval.high);
    if (change.noise == painting::Noise::kBeyond)
      require(change.interval.low >= 0 || change.interval.high <= 0);
  }
}

/// Only the start of a file decides this.
bool is_other_input(std::string_view text) {
  return !folded::describe_other_input(text.substr(0, 64UL * 1024)).empty();
}

void check_tool(const std::string& before, const std::string& after, const char* mode) {
  const Fd first = testing::memory_file(before);
  const Fd second = testing::memory_file(after);
  const auto path = [](const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); };
  const auto r = testing::run_tool(kFlamediff, {mode, path(first), path(second)});
  if (is_other_input(before) || is_other_input(after))
    return require(r.status == 1 && r.out.empty());
  require(r.status == 0 || r.status == 2);
  if (mode == std::string_view("--inverted"))
    require(r.out.ends_with("</svg>\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  const auto middle = std::min(text.find('\0'), size);
  const std::string before(text.substr(0, middle));
  const std::string after(text.substr(std::min(middle + 1, size)));
  check_comparison(before, after, size % 2 == 0);
  for (const char* mode : {"--folded", "--text", "--inverted"})
    check_tool(before, after, mode);
  return 0;
}
