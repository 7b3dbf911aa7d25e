// Parses any text as a recorder's settings for a program.  The result is within the bounds of their
// shared memory; written as text, it parses to the same settings.
// SPDX-License-Identifier: MIT
#include <bit>
#include <cstdlib>
#include <string>

#include "recording/signal/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  using namespace pe::inprocess;
  const Settings first = parse_settings({data, size});
  const bool is_within =
      first.hz >= kLeastHz && first.hz <= kMostHz && std::has_single_bit(first.ring_bytes) &&
      first.ring_bytes >= kLeastRingBytes && first.ring_bytes <= kMostRingBytes &&
      first.stack_bytes <= first.ring_bytes / 4 && first.stack_bytes % 8 == 0;
  if (!is_within)
    std::abort();
  std::string text = "hz=" + std::to_string(first.hz);
  text += ",stack=" + std::to_string(first.stack_bytes);
  text += ",ring=" + std::to_string(first.ring_bytes);
  text += first.clock == Clock::kWall ? ",clock=wall" : ",clock=cpu";
  text += first.follows_forks ? ",follow=1" : ",follow=0";
  text += ",filters=" + std::to_string(first.most_filters);
  text += ",socket=";
  text += first.socket.view();
  text += ",key=";
  text += first.key.view();
  const Settings second = parse_settings(text);
  const bool is_same =
      second.socket.view() == first.socket.view() && second.key.view() == first.key.view() &&
      second.hz == first.hz && second.clock == first.clock &&
      second.stack_bytes == first.stack_bytes && second.ring_bytes == first.ring_bytes &&
      second.follows_forks == first.follows_forks && second.most_filters == first.most_filters;
  if (!is_same)
    std::abort();
  return 0;
}
