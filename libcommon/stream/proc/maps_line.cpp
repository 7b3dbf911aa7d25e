// SPDX-License-Identifier: MIT
#include "stream/proc/maps_line.h"

#include "base/characters.h"
#include "base/parse_number.h"

namespace pe::stream {
namespace {

template <typename T>
bool take_hex(std::string_view& text, char separator, T& into) {
  const auto field = take_until(text, separator);
  const auto value = field ? parse_number<T>(*field, 16) : std::nullopt;
  if (value)
    into = *value;
  return value.has_value();
}

}  // namespace

std::optional<MapsLine> parse_maps_line(std::string_view line) noexcept {
  MapsLine map;
  constexpr std::size_t kPermissionChars = 4;
  if (!take_hex(line, '-', map.start) || !take_hex(line, ' ', map.end))
    return std::nullopt;
  const auto permissions = take_until(line, ' ');
  if (!permissions || permissions->size() != kPermissionChars ||
      !take_hex(line, ' ', map.file_offset) || !take_hex(line, ':', map.device_major) ||
      !take_hex(line, ' ', map.device_minor))
    return std::nullopt;
  const auto inode = parse_number<std::uint64_t>(line.substr(0, line.find(' ')));
  if (!inode || map.start >= map.end)
    return std::nullopt;
  map.inode = *inode;
  map.readable = (*permissions)[0] == 'r';
  map.writable = (*permissions)[1] == 'w';
  map.executable = (*permissions)[2] == 'x';
  map.shared = (*permissions)[3] == 's';
  const auto after_inode = line.find(' ');
  const auto path = after_inode == std::string_view::npos
                        ? after_inode
                        : line.find_first_not_of(' ', after_inode);
  if (path != std::string_view::npos)
    map.path = line.substr(path);
  return map;
}

}  // namespace pe::stream
