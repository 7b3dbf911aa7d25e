// SPDX-License-Identifier: MIT
#include "folded/other_input.h"

#include <span>

namespace pe::folded {
namespace {

struct Mark {
  std::string_view text;
  std::string_view what;
};

constexpr std::string_view kStream =
    "a sample stream or perf.data file, not folded text (fold it: pe-symbolize FILE | stackfold)";
constexpr std::string_view kPprof = "a pprof profile, not folded text (fold it: stackfold FILE)";

constexpr Mark kUnreadable[] = {
    {"\x7f"
     "ELF",
     "a program, not a profile (record it: stackpipe record -o FILE.folded -- PROGRAM)"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd (unpack it: zstd -dc FILE)"},  // RFC 8878, 3.1.1
    {"\xff\xfe", "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)"},
    {"\xfe\xff", "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)"},
};

constexpr Mark kStarts[] = {
    {"PERFILE2", kStream},
    {"2ELIFREP", kStream},  // of a machine with the other byte order
    {"\x1f\x8b",
     "compressed by gzip (fold a pprof profile: stackfold FILE; unpack folded text: gzip -dc "
     "FILE)"},
    // profile.proto: the first sample type, which has the strings 1 and 2 in nearly all profiles.
    {"\x0a\x04\x08\x01\x10\x02", kPprof},
};

/// Returns the description of the mark with which `head` starts; empty if it has none.
std::string_view find_start(std::string_view head, std::span<const Mark> marks) {
  for (const Mark& mark : marks)
    if (head.starts_with(mark.text))
      return mark.what;
  return {};
}

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

std::string_view describe_unreadable(std::string_view head) {
  return find_start(head, kUnreadable);
}

std::string_view describe_other_input(std::string_view head) {
  for (const std::span<const Mark> marks :
       {std::span<const Mark>(kUnreadable), std::span<const Mark>(kStarts)})
    if (const auto what = find_start(head, marks); !what.empty())
      return what;
  if (has_ghc_table(head))
    return "a profile of GHC, not folded text (fold it: stackfold FILE)";
  return {};
}

}  // namespace pe::folded
