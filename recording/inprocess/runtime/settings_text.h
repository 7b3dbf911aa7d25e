// The settings of a library in an environment variable of the program: "name=value,name=value".
// Malformed fields are skipped, so library and tool may differ in version.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

/// Returns "NAME=TEXT" from an environment (execve(2)), the last one if there are several; empty if
/// there is none.
inline std::string_view find_variable(const char* const* environment,
                                      std::string_view name) noexcept {
  std::string_view found;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
      found = variable;
  }
  return found;
}

/// Returns only the text of the variable.
inline std::string_view text_of_variable(const char* const* environment,
                                         std::string_view name) noexcept {
  const std::string_view variable = find_variable(environment, name);
  return variable.empty() ? variable : variable.substr(name.size() + 1);
}

/// Calls `on_field(name, value)` for each field of the settings.
template <typename Function>
void for_each_field(std::string_view settings, Function on_field) noexcept {
  while (!settings.empty()) {
    const std::string_view field = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(settings.size(), field.size() + 1));
    const auto equals = field.find('=');
    if (equals != std::string_view::npos)
      on_field(field.substr(0, equals), field.substr(equals + 1));
  }
}

// A short text that needs no allocated memory.

class ShortText {
 public:
  static constexpr std::size_t kMost = 107;  ///< unix(7): sun_path without its first byte

  /// False, and no change, if `text` is too long.
  bool set(std::string_view text) noexcept {
    if (text.size() > kMost)
      return false;
    std::copy(text.begin(), text.end(), characters_.begin());
    size_ = text.size();
    return true;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {characters_.data(), size_}; }

 private:
  std::array<char, kMost> characters_{};
  std::size_t size_ = 0;
};

}  // namespace pe::inprocess
