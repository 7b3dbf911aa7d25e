// SPDX-License-Identifier: MIT
#include "malloctrace/preload/settings.h"

#include "base/parse_number.h"
#include "recording/inprocess/runtime/settings_text.h"

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
  inprocess::for_each_field(text, [&settings](std::string_view name, std::string_view value) {
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
  });
  return settings;
}

}  // namespace pe::malloctrace
