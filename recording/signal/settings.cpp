// SPDX-License-Identifier: MIT
#include "recording/signal/settings.h"

#include "base/parse_number.h"
#include "recording/inprocess/runtime/settings_text.h"

namespace pe::inprocess {
namespace {

void set_number(std::string_view value, std::uint32_t least, std::uint32_t most,
                std::uint32_t& to) noexcept {
  const auto number = parse_number<std::uint32_t>(value);
  if (number && *number >= least && *number <= most)
    to = *number;
}

void set_field(std::string_view name, std::string_view value, Settings& settings) noexcept {
  if (name == "socket")
    settings.socket.set(value);
  else if (name == "key")
    settings.key.set(value);
  else if (name == "hz")
    set_number(value, kLeastHz, kMostHz, settings.hz);
  else if (name == "stack")
    set_number(value, 0, kMostRingBytes, settings.stack_bytes);
  else if (name == "ring")
    set_number(value, kLeastRingBytes, kMostRingBytes, settings.ring_bytes);
  else if (name == "filters")
    set_number(value, 0, ~std::uint32_t{0}, settings.most_filters);
  else if (name == "clock" && (value == "cpu" || value == "wall"))
    settings.clock = value == "wall" ? Clock::kWall : Clock::kCpu;
  else if (name == "follow" && (value == "0" || value == "1"))
    settings.follows_forks = value == "1";
}

}  // namespace

Settings parse_settings(std::string_view text) noexcept {
  Settings settings;
  for_each_field(text, [&settings](std::string_view name, std::string_view value) {
    set_field(name, value, settings);
  });
  settings.fit();
  return settings;
}

}  // namespace pe::inprocess
