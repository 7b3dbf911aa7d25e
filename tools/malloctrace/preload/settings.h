// What malloctrace asks the library for, in the environment variable MALLOCTRACE:
//
//     socket=NAME,sample=BYTES,depth=N,mmap=1,follow=0
//
// NAME is that of an abstract unix socket, without its leading zero byte and without commas.
// Fields that are malformed or unknown mean nothing, so that library and tool may differ in
// version. SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pe::malloctrace {

struct Settings {
  static constexpr std::size_t kMaxSocketName = 107;  ///< unix(7): sun_path, less its first byte

  std::array<char, kMaxSocketName> socket{};
  std::size_t socket_size = 0;     ///< 0: nobody asked, nothing is traced
  std::uint64_t sample_bytes = 0;  ///< mean distance of samples; 0: every allocation
  std::uint32_t depth = 0;         ///< frames that are kept, the innermost; 0: all
  bool traces_mmap = false;
  bool follows_forks = true;

  [[nodiscard]] std::string_view socket_name() const noexcept {
    return {socket.data(), socket_size};
  }
};

Settings parse_settings(std::string_view text) noexcept;

}  // namespace pe::malloctrace
