// Formats the output of the kernel's verifier as a part of a message.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::unwind {

/// Returns "; the verifier: " and the last lines of its log, which show where it gave up.  They
/// form one line, with " | " between them.  Returns an empty text for an empty log.  A log ends
/// with its first NUL.
inline std::string told_by_verifier(std::string_view log) {
  constexpr std::size_t kLines = 30;
  log = log.substr(0, log.find('\0'));
  while (log.ends_with('\n'))
    log.remove_suffix(1);
  if (log.empty())
    return {};
  std::size_t start = log.size();
  for (std::size_t lines = 0; lines < kLines && start != std::string_view::npos; ++lines)
    start = start == 0 ? std::string_view::npos : log.rfind('\n', start - 1);
  std::string text = "; the verifier: ";
  for (const char byte : log.substr(start == std::string_view::npos ? 0 : start + 1)) {
    if (byte == '\n')
      text += " | ";
    else
      text += byte;
  }
  return text;
}

}  // namespace pe::unwind
