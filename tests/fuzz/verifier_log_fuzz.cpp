// Reads any text as the log of the kernel's verifier.  The message about it is one line, which
// consists of the log's last lines only.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "recording/bpf/mapped_memory.h"

using pe::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view log(data, size);
  const std::string told = pe::unwind::verifier_message(log);
  if (told.empty()) {
    require(log.substr(0, log.find('\0')).find_first_not_of('\n') == std::string_view::npos);
    return 0;
  }
  constexpr std::string_view kStart = "; the verifier: ";
  require(told.starts_with(kStart) && told.find_first_of(std::string_view("\n\0", 2)) == told.npos);
  // Each line end became " | "; the message is then the end of the log.
  std::string_view left = log.substr(0, log.find('\0'));
  while (left.ends_with('\n'))
    left.remove_suffix(1);
  std::string end(left);
  for (std::size_t at = 0; (at = end.find('\n', at)) != std::string::npos; at += 3)
    end.replace(at, 1, " | ");
  require(end.ends_with(std::string_view(told).substr(kStart.size())));
  return 0;
}
