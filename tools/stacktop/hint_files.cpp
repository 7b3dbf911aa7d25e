// SPDX-License-Identifier: MIT
#include "stacktop/hint_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>

#include "base/error.h"
#include "base/io/regular_file.h"

namespace pe::stacktop {
namespace {

constexpr std::uint64_t kLargestFileBytes = 1UL << 20;

/// Returns the text of a regular file; nullopt if it does not exist.  Throws Error if it cannot be
/// read.
std::optional<std::string> read_if_there(const std::string& path) {
  const auto opened = open_regular(path);
  if (const auto* failure = std::get_if<FileFailure>(&opened)) {
    switch (*failure) {
      case FileFailure::kMissing:
        return std::nullopt;
      case FileFailure::kPermission:
        throw_errno(path, EACCES);
      case FileFailure::kNotRegular:
        throw Error(fmt::format("{}: not a regular file", path));
      case FileFailure::kUnreadable:
        throw_errno(path, EIO);
    }
  }
  const auto& file = std::get<RegularFile>(opened);
  if (file.size_bytes > kLargestFileBytes)
    throw Error(fmt::format("{}: larger than {} bytes", path, kLargestFileBytes));
  std::string text(file.size_bytes, '\0');
  text.resize(read_at(file.fd, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string users_file() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && folder[0] == '/')
    return fmt::format("{}/stackpipe/hints", folder);
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fmt::format("{}/.config/stackpipe/hints", home);
  return {};
}

/// Returns the file relative to this program, so that an installation can be moved, or used before
/// it is installed.  Otherwise returns the configured path.
std::string installed_file() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside =
      (self.parent_path().parent_path() / "share" / "stackpipe" / "hints").lexically_normal();
  if (!error && std::filesystem::exists(beside, error))
    return beside.string();
  return PE_DATADIR "/stackpipe/hints";
}

}  // namespace

Hints load_hints(std::span<const std::string> files) {
  Hints hints;
  for (const std::string& path : files) {
    const auto text = read_if_there(path);
    if (!text)
      throw_errno(path, ENOENT);
    hints.add(*text, path);
  }
  for (const std::string& path : {users_file(), installed_file()}) {
    if (path.empty())
      continue;
    if (const auto text = read_if_there(path))
      hints.add(*text, path);
  }
  return hints;
}

}  // namespace pe::stacktop
