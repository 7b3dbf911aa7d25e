// A folded line that is printed and read again is the same, and so are a fact and a time.
// No reader takes a fact for a stack.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "folded/facts.h"
#include "folded/folded_line.h"

namespace {

using pe::folded::Columns;

constexpr Columns kColumns[] = {Columns::kOne, Columns::kTwo, Columns::kPerl, Columns::kPerlOne};

void check(std::string_view text, pe::folded::Columns columns) {
  const auto line = pe::folded::parse_folded_line(text, columns);
  if (!line)
    return;
  if (!text.starts_with(line->stack) ||
      (line->stack.empty() && columns != pe::folded::Columns::kPerl &&
       columns != pe::folded::Columns::kPerlOne))
    std::abort();
  std::string printed;
  append_folded_line(printed, *line);
  printed.pop_back();  // the newline
  const auto again = pe::folded::parse_folded_line(printed, columns);
  if (!again || again->stack != line->stack || again->count != line->count ||
      again->before != line->before)
    std::abort();
}

/// Prints `value` and reads it again.
void check_fact(std::string_view value) {
  std::string printed;
  pe::folded::append_fact(printed, "key", value);
  if (printed.empty())
    return;
  if (printed.find('\n') != printed.size() - 1)
    std::abort();
  printed.pop_back();  // the newline
  for (const auto columns : kColumns)
    if (pe::folded::parse_folded_line(printed, columns))
      std::abort();
  const auto fact = pe::folded::parse_fact(printed);
  if (!fact || fact->key != "key" || fact->value.size() > value.size())
    std::abort();
  std::string again;
  pe::folded::append_fact(again, fact->key, fact->value);
  if (again != printed + "\n")
    std::abort();
}

/// A time that is printed and read again is the same.
void check_time(std::string_view text) {
  const auto ns = pe::folded::parse_time_root(text);
  if (ns && pe::folded::parse_time_root(pe::folded::time_root(*ns, *ns, 1)) != ns)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  for (const auto columns : kColumns)
    check(text, columns);
  check_fact(text);
  check_time(text);
  pe::folded::Facts facts;
  if (facts.take(text) != pe::folded::parse_fact(text).has_value())
    std::abort();
  for (const pe::folded::Fact& fact : facts.all())
    check_fact(fact.value);
  return 0;
}
