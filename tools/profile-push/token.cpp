// SPDX-License-Identifier: MIT
#include "profile-push/token.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/io/regular_file.h"

namespace pe::push {
namespace {

constexpr std::size_t kMostTokenBytes = 8192;

RegularFile open_token(const std::string& path) {
  auto opened = open_regular(path);
  if (const auto* failure = std::get_if<FileFailure>(&opened)) {
    switch (*failure) {
      case FileFailure::kMissing:
        throw_errno(path, ENOENT);
      case FileFailure::kPermission:
        throw_errno(path, EACCES);
      case FileFailure::kNotRegular:
        throw Error(path + ": not a regular file");
      case FileFailure::kUnreadable:
        throw Error(path + ": cannot be read");
    }
  }
  return std::move(std::get<RegularFile>(opened));
}

/// What a header can hold, and no blank.
bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Token read_token(const std::string& path) {
  const RegularFile file = open_token(path);
  struct stat status = {};
  if (::fstat(file.fd.get(), &status) != 0)
    throw_errno(path, errno);
  if ((status.st_mode & (S_IROTH | S_IWOTH)) != 0)
    throw Error(path + ": a token that everybody can read or change: chmod o= this file");
  std::string text(kMostTokenBytes, '\0');
  text.resize(read_at(file.fd, 0, std::as_writable_bytes(std::span(text))));
  text.resize(std::min(text.size(), text.find('\n')));
  if (text.ends_with('\r'))
    text.pop_back();
  if (text.empty() || text.size() == kMostTokenBytes || !is_visible(text))
    throw Error(path + ": holds no token: one line of letters, digits and signs is needed");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    return {.user = "", .secret = text};
  if (colon == 0)
    throw Error(path + ": no user before the colon");
  return {.user = text.substr(0, colon), .secret = text.substr(colon + 1)};
}

bool repeats(std::string_view answer, const Token& token) {
  constexpr std::size_t kTelling = 8;
  const std::string_view secret = token.secret;
  // A user and a password are sent in base64, behind this word.
  return !secret.empty() && (answer.find(secret.substr(0, kTelling)) != std::string_view::npos ||
                             answer.find("Basic ") != std::string_view::npos);
}

}  // namespace pe::push
