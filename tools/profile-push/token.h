// The secret by which a server knows us.  It is never on a command line, nor in a message.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::push {

struct Token {
  std::string user;    ///< of HTTP's Basic (RFC 7617); empty: Bearer (RFC 6750)
  std::string secret;  ///< empty: there is none
};

/// The first line of a file, "TOKEN" or "USER:PASSWORD"; a bearer token has no colon.  Throws
/// Error, which says nothing of what is in it, also if others than its owner and group can read or
/// write the file.
Token read_token(const std::string& path);

/// Does a server's answer hold the token, the beginning of it, or the header that it came in?
bool repeats(std::string_view answer, const Token& token);

}  // namespace pe::push
