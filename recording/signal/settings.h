// The recorder's settings for the library in a program, in the environment variable PE_SAMPLER:
//
//     socket=NAME,key=TEXT,hz=N,clock=cpu,stack=BYTES,ring=BYTES,follow=1,filters=0
//
// NAME is the name of an abstract unix socket, without its leading zero byte and without commas.
// Malformed and unknown fields are ignored, so library and tool may differ in version.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "recording/inprocess/runtime/settings_text.h"
#include "recording/signal/layout.h"

namespace pe::inprocess {

inline constexpr std::string_view kSettingsVariable = "PE_SAMPLER";

struct Settings : SampleSettings {
  ShortText socket;  ///< empty: no recorder, so nothing is sampled
  ShortText key;     ///< sent with the memory, see recording/inprocess/listener.h
  bool follows_forks = true;
  /// A program with more filters of system calls than the recorder has is not sampled: they may
  /// end it because of our calls.
  std::uint32_t most_filters = ~std::uint32_t{0};
};

/// Returns settings within the bounds of layout.h, whatever the text contains.
Settings parse_settings(std::string_view text) noexcept;

}  // namespace pe::inprocess
