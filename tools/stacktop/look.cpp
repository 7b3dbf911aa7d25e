// SPDX-License-Identifier: MIT
#include "stacktop/look.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>

namespace pe::stacktop {
namespace {

constexpr std::size_t kUsualColumns = 80;

std::size_t columns_of_terminal(int fd) {
  struct winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

/// Checks the first non-empty variable of those that set LC_CTYPE.
bool has_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || value[0] == '\0')
      continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

/// True if NO_COLOR is present and not empty (https://no-color.org).
bool is_color_unwanted() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && value[0] != '\0';
}

}  // namespace

Look look_of(const Output& out, const Options& options) {
  Look look;
  if (out.is_terminal()) {
    look.has_bars = true;
    look.is_utf8 = has_utf8_locale();
    look.columns = columns_of_terminal(out.fd());
  }
  if (options.columns)
    look.columns = options.columns;
  const When color = options.color;
  look.has_color =
      color == When::kAlways || (color == When::kAuto && out.is_terminal() && !is_color_unwanted());
  return look;
}

}  // namespace pe::stacktop
