// Reads any bytes as a user's file of hints.  Each accepted hint is a rule.  The printed text of a
// hint or of an untrusted name cannot control a terminal.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/io/json_writer.h"
#include "stacktop/hints.h"
#include "stacktop/text_report.h"
#include "support/string_output.h"

namespace {

void check_shown(std::string_view text) {
  for (const char c : pe::stacktop::shown(text))
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      std::abort();
  pe::StringOutput json;
  pe::JsonWriter(json).value(text);
  for (const char c : json.text)
    if (static_cast<unsigned char>(c) < ' ')
      std::abort();
  constexpr std::size_t kColumns = 20;
  const std::string shown = pe::stacktop::shown(text);
  if (pe::stacktop::columns_of(pe::stacktop::shortened(shown, kColumns)) > kColumns)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  pe::stacktop::Hints hints;
  hints.add(text, "fuzz");
  if ((hints.ignored() == 0) != hints.first_ignored().empty())
    std::abort();
  for (std::size_t i = 0; i < hints.size(); ++i) {
    if (hints[i].expressions.empty() || hints[i].text.empty() ||
        hints[i].text.find('\n') != std::string::npos)
      std::abort();
  }
  const std::string_view name = text.substr(0, text.find('\n'));
  if (const std::size_t found = hints.find(name); found < hints.size())
    check_shown(hints[found].text);
  check_shown(name);
  return 0;
}
