// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <system_error>

namespace pe {

void throw_errno(std::string_view subject, int code) {
  throw Error(std::string(subject) + ": " + errno_text(code));
}

std::string errno_text(int code) { return std::generic_category().message(code); }

}  // namespace pe
