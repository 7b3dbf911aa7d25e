// The settings that malloctrace gives the library in the environment variable MALLOCTRACE:
//
//     socket=NAME,key=TEXT,sample=BYTES,depth=N,mmap=1,follow=0
//
// NAME is that of an abstract unix socket, without its leading zero byte and without commas.
// Malformed and unknown fields are ignored, so library and tool may differ in version.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "recording/inprocess/runtime/short_text.h"

namespace pe::malloctrace {

inline constexpr std::string_view kSettingsVariable = "MALLOCTRACE";

struct Settings {
  inprocess::ShortText socket;     ///< empty: nothing is traced
  inprocess::ShortText key;        ///< sent with the memory, see recording/inprocess/listener.h
  std::uint64_t sample_bytes = 0;  ///< mean distance of samples; 0: every allocation
  std::uint32_t depth = 0;         ///< number of innermost frames to keep; 0: all
  bool traces_mmap = false;
  bool follows_forks = true;
};

Settings parse_settings(std::string_view text) noexcept;

}  // namespace pe::malloctrace
