// SPDX-License-Identifier: MIT
#include "flamesvg/profile.h"

#include <utility>

#include "calltree/tree_builder.h"

namespace pe::flamesvg {
namespace {

/// The frames of `stack` from last to first, into `reversed`.
void reverse_frames(std::string_view stack, std::string& reversed) {
  reversed.clear();
  for (;;) {
    const auto separator = stack.rfind(';');
    if (separator == std::string_view::npos)
      break;
    reversed.append(stack.substr(separator + 1)).append(";");
    stack = stack.substr(0, separator);
  }
  reversed += stack;
}

}  // namespace

Profile read_profile(std::span<const std::string> files, bool reverse, int stdin_fd) {
  folded::FoldedReader reader(files, stdin_fd);
  calltree::TreeBuilder builder;
  std::string reversed;
  while (const auto line = reader.next()) {
    if (reverse)
      reverse_frames(line->stack, reversed);
    builder.add(reverse ? std::string_view(reversed) : line->stack, line->count);
  }
  return {.tree = std::move(builder).finish(), .malformed = reader.malformed()};
}

}  // namespace pe::flamesvg
