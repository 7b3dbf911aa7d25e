// Reads any words, one on each line, as a perl script's command line.  The result is a strict
// command line, reading it again gives the same, and a wrong command line is reported.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/characters.h"
#include "base/cli/getopt_long.h"
#include "fuzz/require.h"

using pe::PerlName;
using pe::StrictArgs;
using pe::Takes;
using pe::testing::require;

namespace {

constexpr std::array<pe::PerlOption, 7> kOptions{{
    {.name = "kernel"},
    {.name = "addrs"},
    {.name = "all"},
    {.name = "event-filter", .takes = Takes::kText, .as = "event"},
    {.name = "width", .takes = Takes::kInteger},
    {.name = "fontsize", .takes = Takes::kNumber},
    {.name = "help", .takes = Takes::kUsage},
}};
constexpr std::array<pe::PerlOption, 3> kLetters{{
    {.name = "n"},
    {.name = "s"},
    {.name = "h", .takes = Takes::kUsage},
}};
constexpr std::array<std::string_view, 1> kExtra{"--compat"};

/// One of our options, with the script's own name for it.
std::string as_scripts(std::string option, const PerlName& script) {
  for (const auto& each : script.options) {
    const std::string ours = "--" + std::string(pe::our_name(each));
    if (option == ours || option.starts_with(ours + "="))
      return "--" + std::string(each.name) + option.substr(ours.size());
  }
  return option;
}

void check(const PerlName& script, const std::vector<std::string>& words) {
  const StrictArgs strict = to_strict(script, words);
  if (!strict.problems.empty() || strict.wants_usage)
    return;
  const auto end = std::find(strict.args.begin(), strict.args.end(), "--");
  require(strict.args.size() >= 2 && strict.args.front() == "--compat");
  require(end != strict.args.end());
  // The files are the words themselves, in their order.
  auto word = words.begin();
  for (auto file = end + 1; file != strict.args.end(); ++file, ++word) {
    word = std::find(word, words.end(), *file);
    require(word != words.end());
  }
  if (script.grammar != pe::PerlGrammar::kWords || script.options.empty())
    return;
  std::vector<std::string> again;
  for (auto option = strict.args.begin() + 1; option != end; ++option)
    again.push_back(as_scripts(*option, script));
  again.insert(again.end(), end, strict.args.end());
  require(to_strict(script, again).args == strict.args);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  std::vector<std::string> words;
  std::string_view left(data, size);
  while (const auto word = pe::take_until(left, '\n'))
    words.emplace_back(*word);
  check({"script.pl", kExtra, kOptions}, words);
  check({"letters.pl", kExtra, kLetters, pe::PerlGrammar::kLetters}, words);
  check({"plain.pl", kExtra, {}}, words);
  return 0;
}
