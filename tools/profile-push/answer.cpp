// SPDX-License-Identifier: MIT
#include "profile-push/answer.h"

#include <fmt/format.h>

#include "base/quote.h"

namespace pe::push {

std::string answer_text(const Answer& answer) {
  constexpr std::size_t kMostBytes = 200;
  if (answer.status == 0)
    return printable(answer.text.substr(0, kMostBytes));
  return answer.text.empty()
             ? fmt::format("{}", answer.status)
             : fmt::format("{}: {}", answer.status, pe::quoted(answer.text, kMostBytes));
}

}  // namespace pe::push
