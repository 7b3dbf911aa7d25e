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

/// Calls `on_part(std::string_view)` with the parts of a path as it is in the file system: the
/// kernel writes a newline as "\012", and escapes nothing else (show_map_vma(),
/// fs/proc/task_mmu.c).
template <typename Function>
void for_each_path_part(std::string_view path, Function on_part) {
  constexpr std::string_view kNewline = "\\012";
  for (;;) {
    const auto at = path.find(kNewline);
    on_part(path.substr(0, at));
    if (at == std::string_view::npos)
      return;
    on_part(std::string_view("\n"));
    path.remove_prefix(at + kNewline.size());
  }
}

/// Returns nullopt if the line does not have the form that proc(5) describes.
std::optional<MapsLine> parse_maps_line(std::string_view line) noexcept;

}  // namespace pe::stream
