// SPDX-License-Identifier: MIT
#include "stackfold/detect.h"

#include <string_view>

#include "base/take_until.h"
#include "folded/folded_line.h"
#include "perf/record.h"
#include "stackfold/perf_script/frame.h"
#include "stackfold/perf_script/header.h"

namespace pe::fold {
namespace {

// Comments of `perf script --header` come first; they take about 10 KiB on a large machine.
constexpr std::size_t kLookBytes = 64UL * 1024;

bool is_stream(Bytes head) {
  if (head.size() < sizeof perf::kMagic)
    return false;
  const std::uint64_t magic = perf::U64View(head)[0];
  return magic == perf::kMagic || magic == perf::kMagicOtherByteOrder;
}

/// A sample's first line, then a frame or an empty line, before any folded line.
bool is_perf_script(std::string_view text) {
  bool has_header = false;
  while (const auto line = take_until(text, '\n')) {
    const bool is_empty = line->find_first_not_of(" \t\r") == std::string_view::npos;
    if (line->starts_with('#') || (is_empty && !has_header))
      continue;
    const bool is_indented = line->starts_with(' ') || line->starts_with('\t');
    if (has_header && (is_empty || is_indented || parse_perf_frame(*line, false)))
      return true;
    // "java;a;b 12" is no header: nothing stands behind its number.
    has_header = parse_perf_header(*line, HeaderRules::kBest).has_value();
    if (!has_header && folded::parse_folded_line(*line))
      return false;
  }
  return has_header;
}

}  // namespace

InputFormat detect(io::Input& input) {
  if (is_stream(input.peek(sizeof perf::kMagic)))
    return InputFormat::kStream;
  const Bytes head = input.peek(kLookBytes);
  return is_perf_script({reinterpret_cast<const char*>(head.data()), head.size()})
             ? InputFormat::kPerfScript
             : InputFormat::kFolded;
}

}  // namespace pe::fold
