// Any text as what /proc says of a thread: nothing is read beyond it, and a thread that is said to
// run is not blocked anywhere.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "proc/thread_state.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  (void)pe::proc::parse_schedstat(text);
  const auto state = pe::proc::parse_thread_stat(text);
  if (state && text.find(state->state) == std::string_view::npos)
    std::abort();
  if (text.starts_with("running") && text.size() > 7 && text[7] == '\n' &&
      pe::proc::parse_blocked_at(text))
    std::abort();
  return 0;
}
