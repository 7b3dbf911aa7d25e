// SPDX-License-Identifier: MIT
#include "malloctrace/preload/settings.h"

#include <algorithm>
#include <optional>

#include "base/parse_number.h"

namespace pe::malloctrace {
namespace {

void set_switch(std::string_view value, bool& to) noexcept {
  if (value == "0" || value == "1")
    to = value == "1";
}

template <typename T>
void set_number(std::string_view value, T& to) noexcept {
  to = parse_number<T>(value).value_or(to);
}

}  // namespace

Settings parse_settings(std::string_view text) noexcept {
  Settings settings;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    const auto equals = field.find('=');
    if (equals == std::string_view::npos)
      continue;
    const std::string_view name = field.substr(0, equals);
    const std::string_view value = field.substr(equals + 1);
    if (name == "socket")
      settings.socket.set(value);
    else if (name == "key")
      settings.key.set(value);
    else if (name == "sample")
      set_number(value, settings.sample_bytes);
    else if (name == "depth")
      set_number(value, settings.depth);
    else if (name == "mmap")
      set_switch(value, settings.traces_mmap);
    else if (name == "follow")
      set_switch(value, settings.follows_forks);
  }
  return settings;
}

}  // namespace pe::malloctrace
