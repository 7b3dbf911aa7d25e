// Parses any text as the name of a probe, as a pattern, and as the arguments of a static probe.  An
// accepted probe has a place, and a value that was parsed has a size that a register can have.
//
// Input: the probe, a newline, the arguments.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/require.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/weight.h"

using namespace pe::recording;
using pe::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  constexpr std::size_t kMostBytes = 4096;
  if (size > kMostBytes)
    return 0;
  const std::string all(data, size);
  const std::string text = all.substr(0, all.find('\n'));
  const std::string_view arguments = std::string_view(all).substr(std::min(size, text.size() + 1));
  require(length_of_probe(text) <= text.size());
  require(pe::matches_pattern(text, text) || text.find('?') != text.npos || pe::is_pattern(text));
  for (unsigned number = 0; number < 4; ++number)
    if (const auto weight = argument_of_static_probe(arguments, number)) {
      require(weight->bytes == 1 || weight->bytes == 2 || weight->bytes == 4 || weight->bytes == 8);
      require(weight->reg < 16);
    }
  if (!is_probe(text))
    return 0;
  try {
    const ProbeName probe = parse_probe(text);
    require(!probe.function.empty() || probe.address || probe.line != 0);
    require(text.starts_with(std::string(word_of(probe.kind)) + ":"));
  } catch (const pe::UsageError&) {
    return 0;  // not a probe
  }
  return 0;
}
