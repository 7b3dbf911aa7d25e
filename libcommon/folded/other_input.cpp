// SPDX-License-Identifier: MIT
#include "folded/other_input.h"

namespace pe::folded {
namespace {

struct Mark {
  std::string_view text;
  std::string_view what;
};

constexpr std::string_view kStream =
    "a sample stream or perf.data file, not folded text (fold it: pe-symbolize FILE | stackfold)";
constexpr std::string_view kPprof = "a pprof profile, not folded text (fold it: stackfold FILE)";

constexpr Mark kStarts[] = {
    {"PERFILE2", kStream},
    {"2ELIFREP", kStream},  // of a machine with the other byte order
    {"\x1f\x8b",
     "compressed by gzip (fold a pprof profile: stackfold FILE; unpack folded text: gzip -dc "
     "FILE)"},
    {kElfMagic, kIsProgram},
    {"\x28\xb5\x2f\xfd", "compressed by zstd (unpack it: zstd -dc FILE)"},
    // profile.proto: the first sample type, which has the strings 1 and 2 in nearly all profiles.
    {"\x0a\x04\x08\x01\x10\x02", kPprof},
};

/// Does the text have the head of the table in which GHC's runtime prints a profile?
bool has_ghc_table(std::string_view head) {
  constexpr std::string_view kTable = "\nCOST CENTRE";
  const auto start = head.find(kTable);
  if (start == std::string_view::npos)
    return false;
  const std::string_view line = head.substr(start + 1, head.find('\n', start + 1) - start - 1);
  return line.find("%time") != std::string_view::npos;
}

}  // namespace

std::string_view describe_other_input(std::string_view head) {
  for (const Mark& mark : kStarts)
    if (head.starts_with(mark.text))
      return mark.what;
  if (has_ghc_table(head))
    return "a profile of GHC, not folded text (fold it: stackfold FILE)";
  return {};
}

}  // namespace pe::folded
