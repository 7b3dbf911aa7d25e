// SPDX-License-Identifier: MIT
#include "objects/build_id_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/io/new_file.h"
#include "base/io/regular_file.h"

namespace pe::objects {
namespace {

using Kept = BuildIdCache::Kept;

constexpr std::size_t kDigitsOfFolder = 2;
constexpr std::size_t kMaxPartBytes = 255;  // NAME_MAX
constexpr std::size_t kMinIdBytes = 2;
constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kOwnerFile = 0600;
constexpr const char* kLinks = ".build-id";

/// Returns the parts of the path that are safe as names of folders: none is "..", and none leads
/// into the folder of links.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!part.empty() && part != "." && part != ".." && part != kLinks)
      parts.emplace_back(part.substr(0, kMaxPartBytes));
  }
  return parts;
}

/// Returns the folder if we own it and its mode has none of the `forbidden` bits.
Fd check_owner(Fd folder, mode_t forbidden = 0) {
  struct stat status = {};
  const bool is_ours = folder && ::fstat(folder.get(), &status) == 0 &&
                       status.st_uid == ::geteuid() && (status.st_mode & forbidden) == 0;
  return is_ours ? std::move(folder) : Fd();
}

/// Returns the folder if we own it and nobody else may write to it.
Fd check_ours(Fd folder) { return check_owner(std::move(folder), S_IWGRP | S_IWOTH); }

/// Enters a folder, and makes it if need be; empty if it is a link or belongs to another user.
Fd enter(const Fd& parent, const std::string& name) {
  ::mkdirat(parent.get(), name.c_str(), kOwnerOnly);
  return check_ours(
      Fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
}

/// Returns the path of a name in an open folder.
std::string in_folder(const Fd& folder, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", folder.get(), name);
}

bool write_all(const Fd& to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Kept copy(const Fd& from, std::uint64_t size, const Fd& to) {
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t done = 0; done < size;) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - done));
    const std::size_t n = read_at(from, done, std::span(block).first(wanted));
    if (n == 0)
      return Kept::kChanged;
    if (!write_all(to, std::span(block).first(n)))
      return Kept::kNotWritten;
    done += n;
  }
  return Kept::kYes;
}

/// Is the copied file an image with this build id?
bool is_right(const Fd& file, std::string_view build_id) {
  const auto opened = Image::open(Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
  const auto* image = std::get_if<Image>(&opened);
  return image != nullptr && image->has_build_id(build_id);
}

Kept keep_in(const Fd& folder, std::string_view build_id, const Fd& file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Kept::kChanged;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > BuildIdCache::kMaxFileBytes)
    return Kept::kTooLarge;
  NewFile made(in_folder(folder, "elf"), kOwnerFile);
  if (const Kept copied = copy(file, size, made.fd()); copied != Kept::kYes)
    return copied;
  if (!is_right(made.fd(), build_id))
    return Kept::kChanged;
  made.keep();
  return Kept::kYes;
}

}  // namespace

std::string hex(std::string_view build_id) {
  std::string text;
  for (const char byte : build_id)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

BuildIdCache BuildIdCache::of_user() {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return BuildIdCache(home == nullptr || home[0] != '/' ? "" : fmt::format("{}/.debug", home));
}

std::optional<Image> BuildIdCache::open(std::string_view build_id) const {
  if (folder_.empty() || build_id.size() < kMinIdBytes)
    return std::nullopt;
  const std::string id = hex(build_id);
  const std::string kept = fmt::format("{}/.build-id/{}/{}", folder_, id.substr(0, kDigitsOfFolder),
                                       id.substr(kDigitsOfFolder));
  for (const char* file : {"/elf", ""}) {
    auto opened = Image::open(kept + file);
    auto* image = std::get_if<Image>(&opened);
    if (image != nullptr && image->has_build_id(build_id))
      return std::move(*image);
  }
  return std::nullopt;
}

Kept BuildIdCache::keep(const std::string& path, std::string_view build_id, int file) const {
  if (folder_.empty() || build_id.size() < kMinIdBytes)
    return Kept::kNotWritten;
  if (open(build_id))
    return Kept::kYes;
  const std::string id = hex(build_id);
  // If HOME belongs to another user (sudo -E), nothing is written to it.
  if (!check_owner(Fd(::open(folder_.substr(0, folder_.rfind('/') + 1).c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC))))
    return Kept::kNotOurs;
  ::mkdir(folder_.c_str(), kOwnerOnly);
  const Fd root =
      check_ours(Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!root)
    return Kept::kNotOurs;
  Fd folder(::fcntl(root.get(), F_DUPFD_CLOEXEC, 0));
  std::string target = "../..";
  std::vector<std::string> parts = parts_of(path);
  parts.push_back(id);
  for (const std::string& part : parts) {
    folder = enter(folder, part);
    if (!folder)
      return Kept::kNotOurs;
    target += '/';
    target += part;
  }
  const Fd source(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  try {
    if (const Kept kept = keep_in(folder, build_id, source); kept != Kept::kYes)
      return kept;
    const Fd ids = enter(root, kLinks);
    const Fd links = ids ? enter(ids, id.substr(0, kDigitsOfFolder)) : Fd();
    if (!links)
      return Kept::kNotOurs;
    // An old `.build-id/5e/0a…` may lead elsewhere.
    replace_link(in_folder(links, id.substr(kDigitsOfFolder)), target);
    return Kept::kYes;
  } catch (const Error&) {
    return Kept::kNotWritten;
  }
}

}  // namespace pe::objects
