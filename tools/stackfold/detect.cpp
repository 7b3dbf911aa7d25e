// SPDX-License-Identifier: MIT
#include "stackfold/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "folded/other_input.h"

namespace pe::fold {
namespace {

// `perf script --header` prints its comments first: about 10 KiB on a large machine.
constexpr std::size_t kLookBytes = 64UL * 1024;

}  // namespace

const Format& detect(Input& input) {
  // The first bytes identify a stream: its reader must not wait for the rest of the head.
  const Bytes start = input.peek(sizeof(std::uint64_t));
  const auto text = [](Bytes bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (stream_format().looks_like(text(start)))
    return stream_format();
  if (const auto unreadable = folded::describe_unreadable(text(start)); !unreadable.empty())
    throw Error(fmt::format("{}: {}", input.name(), unreadable));
  std::string_view head = text(input.peek(kLookBytes));
  if (const auto end = head.rfind('\n'); head.size() == kLookBytes && end != head.npos)
    head = head.substr(0, end + 1);  // the last line is incomplete
  const auto format = std::find_if(formats().begin(), formats().end(),
                                   [head](const Format& known) { return known.looks_like(head); });
  if (format != formats().end())
    return *format;
  if (head.size() == kLookBytes && head.find('\n') == head.npos)
    return folded_format();  // a stack may be this long; its reader reports malformed lines
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  throw Error(
      fmt::format("{}: unknown format; first line: {} (stackfold --help lists the formats: choose "
                  "one by --from)",
                  input.name(), in_quotes(head.substr(0, head.find_first_of("\r\n")))));
}

}  // namespace pe::fold
