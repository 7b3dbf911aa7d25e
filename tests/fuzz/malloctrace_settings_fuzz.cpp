// Parses any text as settings.  The result is within its bounds; written as text, it parses to the
// same settings.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>

#include "malloctrace/preload/sampling.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  using pe::malloctrace::parse_settings;
  using pe::malloctrace::Settings;
  const Settings first = parse_settings({data, size});
  if (first.socket.view().size() > pe::inprocess::ShortText::kMost)
    std::abort();
  std::string text = "sample=" + std::to_string(first.sample_bytes);
  text += ",depth=" + std::to_string(first.depth);
  text += first.traces_mmap ? ",mmap=1" : "";
  text += first.follows_forks ? "" : ",follow=0";
  text += ",socket=";
  text += first.socket.view();
  text += ",key=";
  text += first.key.view();
  const Settings second = parse_settings(text);
  const bool is_same =
      second.socket.view() == first.socket.view() && second.key.view() == first.key.view() &&
      second.sample_bytes == first.sample_bytes && second.depth == first.depth &&
      second.traces_mmap == first.traces_mmap && second.follows_forks == first.follows_forks;
  if (!is_same)
    std::abort();
  return 0;
}
