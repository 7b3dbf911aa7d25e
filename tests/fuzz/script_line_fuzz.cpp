// Reads any bytes as the start of a program.  An interpreter is one word of the first line, and
// does not depend on what follows that line.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>
#include <string_view>

#include "recording/inprocess/sanitizer.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view head(data, size);
  const std::string_view program = pe::inprocess::interpreter_in(head);
  const std::string first_line(head.substr(0, head.find('\n')));
  if (pe::inprocess::interpreter_in(first_line) != program)
    std::abort();
  if (program.empty())
    return 0;
  if (!head.starts_with("#!") || first_line.find(program) == std::string::npos ||
      program.find_first_of(std::string_view(" \t\n\0", 4)) != std::string_view::npos)
    std::abort();
  return 0;
}
