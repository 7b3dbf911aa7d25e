// What malloctrace asks the library for, in the environment variable MALLOCTRACE:
//
//     socket=NAME,key=TEXT,sample=BYTES,depth=N,mmap=1,follow=0
//
// NAME is that of an abstract unix socket, without its leading zero byte and without commas.
// Fields that are malformed or unknown mean nothing, so that library and tool may differ in
// version.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "inprocess/short_text.h"

namespace pe::malloctrace {

struct Settings {
  inprocess::ShortText socket;     ///< empty: nobody asked, nothing is traced
  inprocess::ShortText key;        ///< sent along, see inprocess/listener.h
  std::uint64_t sample_bytes = 0;  ///< mean distance of samples; 0: every allocation
  std::uint32_t depth = 0;         ///< frames that are kept, the innermost; 0: all
  bool traces_mmap = false;
  bool follows_forks = true;
};

Settings parse_settings(std::string_view text) noexcept;

}  // namespace pe::malloctrace
