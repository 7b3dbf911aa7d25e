// Reads any text as /proc's files about a thread.  The parsers read only this text, a running
// thread is not blocked, and a path is the same after a newline in it was escaped and unescaped.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "recording/thread_state.h"
#include "stream/proc/maps.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  (void)pe::stream::parse_schedstat(text);
  const auto state = pe::stream::parse_thread_stat(text);
  if (state && text.find(state->state) == std::string_view::npos)
    std::abort();
  if (text.starts_with("running") && text.size() > 7 && text[7] == '\n' &&
      pe::stream::parse_blocked_at(text))
    std::abort();
  const auto status = pe::stream::parse_thread_status(text);
  if (status && (status->pid <= 0 ||
                 (status->state != '?' && text.find(status->state) == std::string_view::npos)))
    std::abort();
  // Backslashes are not escaped, so there must be none in the text.
  if (text.find('\\') == std::string_view::npos) {
    std::string escaped;
    for (const char c : text)
      c == '\n' ? escaped += "\\012" : escaped += c;
    if (pe::stream::unescape_path(escaped) != text)
      std::abort();
  }
  return 0;
}
