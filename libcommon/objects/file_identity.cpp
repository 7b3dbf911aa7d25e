// SPDX-License-Identifier: MIT
#include "objects/file_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

namespace pe::objects {

std::optional<FileIdentity> identity_of(const Image& image) {
  struct stat status = {};
  if (image.fd() < 0 || ::fstat(image.fd(), &status) != 0)
    return std::nullopt;
  return pe::identity_of(status);
}

uid_t file_owner(const Image& image) {
  struct stat status = {};
  return image.fd() >= 0 && ::fstat(image.fd(), &status) == 0 ? status.st_uid : ::geteuid();
}

bool is_trusted(const struct stat& status) {
  const bool is_ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  // Many systems give each user a group of the same number, and let it write.
  const bool is_private = (status.st_mode & S_IWGRP) == 0 || status.st_gid == status.st_uid;
  return is_ours && is_private && (status.st_mode & S_IWOTH) == 0;
}

bool is_of_this_boot(const stream::MappedFile& recorded) {
  return recorded.identity.is_known() && recorded.identity.boot == boot_number();
}

bool may_be(const struct stat& status, const stream::MappedFile& recorded) {
  return !is_of_this_boot(recorded) ||
         (status.st_dev == recorded.identity.device && status.st_ino == recorded.identity.inode);
}

std::optional<ProgramFile> open_program(const std::string& path) {
  std::error_code failed;
  std::string real = std::filesystem::canonical(path, failed).string();
  if (failed)
    return std::nullopt;
  auto opened = Image::open(real);
  auto* const image = std::get_if<Image>(&opened);
  if (image == nullptr)
    return std::nullopt;
  return ProgramFile{.path = std::move(real), .image = std::move(*image)};
}

}  // namespace pe::objects
