// SPDX-License-Identifier: MIT
#include "objects/file_identity.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

namespace pe::objects {

std::optional<FileIdentity> identity_of(const Image& image) {
  struct stat status = {};
  if (image.fd() < 0 || ::fstat(image.fd(), &status) != 0)
    return std::nullopt;
  return FileIdentity{.device = status.st_dev,
                      .inode = status.st_ino,
                      .modified_s = status.st_mtim.tv_sec,
                      .modified_ns = status.st_mtim.tv_nsec,
                      .changed_s = status.st_ctim.tv_sec,
                      .changed_ns = status.st_ctim.tv_nsec};
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
