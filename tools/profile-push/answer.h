// What a server's answer means for the profile that was sent.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace pe::push {

struct Answer {
  long status = 0;  ///< of HTTP; 0: none came, or not all of what was to be sent went
  /// The beginning of the answer's body, or why there is none: neither long nor safe to print.
  std::string text;
  std::optional<std::chrono::seconds> retry_after;
};

enum class Verdict {
  kSent,
  kRefused,   ///< the server will never take this profile
  kTryAgain,  ///< it may take it later, or when it is set up rightly
};

/// RFC 9110, 15.  A profile that is at fault is refused (400, 413, 415, 422, ...); one that was not
/// let in, because of the token (401, 403, 407) or the address (404, 405, redirections), is not at
/// fault: once that is mended, it can be sent.
constexpr Verdict judge(long status) {
  if (status >= 200 && status < 300)
    return Verdict::kSent;
  switch (status) {
    case 401:
    case 403:
    case 404:
    case 405:
    case 407:
    case 408:
    case 421:
    case 425:
    case 426:
    case 429:
      return Verdict::kTryAgain;
    default:
      return status >= 400 && status < 500 ? Verdict::kRefused : Verdict::kTryAgain;
  }
}

/// "503: 'out of memory'", or what was in its way.
std::string answer_text(const Answer& answer);

}  // namespace pe::push
