// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/module_list.h"

#include <algorithm>

namespace pe::malloctrace {

bool ModuleList::start(SharedMemory shared) noexcept {
  shared_ = shared;
  return ranges_.map(heap::kMaxModules) && is_gone_.map(heap::kMaxModules);
}

std::uint32_t ModuleList::add(const stream::MapsLine& map) noexcept {
  heap::Header& header = shared_.header();
  std::uint32_t number = header.modules;
  while (number != 0 && !is_same(number, map))
    --number;
  if (number == 0)
    number = append(map);
  if (number == 0 || known_ >= ranges_.size()) {
    count_up(header.full);
    return 0;
  }
  ranges_[known_++] = {map.start, map.end, number};
  return number;
}

/// 0 if there is no room.
std::uint32_t ModuleList::append(const stream::MapsLine& map) noexcept {
  heap::Header& header = shared_.header();
  if (header.modules >= heap::kMaxModules)
    return 0;
  heap::Module& module = shared_.modules()[header.modules];
  module.start = map.start;
  module.end = map.end;
  module.file_offset = map.file_offset;
  module.major = map.device_major;
  module.minor = map.device_minor;
  module.inode = map.inode;
  module.number = header.modules;
  const std::size_t size = std::min(map.path.size(), sizeof module.path);
  module.path_length = static_cast<std::uint32_t>(size);
  std::copy_n(map.path.data(), size, module.path);
  publish(header.modules, header.modules + 1);
  return header.modules;
}

std::uint32_t ModuleList::find(std::uint64_t avma) noexcept {
  for (std::size_t i = 0; i < known_; ++i)
    if (avma - ranges_[i].start < ranges_[i].end - ranges_[i].start)
      return ranges_[i].number;
  std::uint32_t number = 0;
  inprocess::for_each_own_mapping(room_, [&](const stream::MapsLine& map) {
    if (!map.executable || avma < map.start || avma >= map.end)
      return true;
    number = add(map);
    return false;
  });
  return number;
}

bool ModuleList::is_same(std::uint32_t number, const stream::MapsLine& map) const noexcept {
  const heap::Module& module = shared_.modules()[number - 1];
  const std::string_view path(module.path, module.path_length);
  return map.start == module.start && map.end == module.end && map.inode == module.inode &&
         map.file_offset == module.file_offset && map.device_major == module.major &&
         map.device_minor == module.minor && map.path.substr(0, sizeof module.path) == path;
}

void ModuleList::find_gone() noexcept {
  std::fill_n(is_gone_.data(), known_, true);
  const bool is_read = inprocess::for_each_own_mapping(room_, [this](const stream::MapsLine& map) {
    for (std::size_t i = 0; i < known_; ++i)
      if (map.executable && is_same(ranges_[i].number, map))
        is_gone_[i] = false;
    return true;
  });
  if (!is_read)
    std::fill_n(is_gone_.data(), known_, false);
}

}  // namespace pe::malloctrace
