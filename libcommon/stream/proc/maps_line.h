// Parses a line of /proc/PID/maps (proc(5)).  It allocates nothing, because a process may read its
// own lines where it must not allocate.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pe::stream {

/// One line of /proc/PID/maps.
struct MapsLine {
  std::uint64_t start = 0, end = 0;  ///< avma
  std::uint64_t file_offset = 0;     ///< bytes
  std::uint32_t device_major = 0, device_minor = 0;
  std::uint64_t inode = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::string_view path;  ///< as written: "\012" for a newline; empty for anonymous memory
};

/// Returns nullopt if the line does not have the form that proc(5) describes.
std::optional<MapsLine> parse_maps_line(std::string_view line) noexcept;

}  // namespace pe::stream
