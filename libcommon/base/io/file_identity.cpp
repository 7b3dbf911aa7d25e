// SPDX-License-Identifier: MIT
#include "base/io/file_identity.h"

#include <array>
#include <span>

#include "base/io/regular_file.h"
#include "base/parse_number.h"

namespace pe {
namespace {

std::uint64_t nanoseconds(const timespec& time) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t read_boot_number() {
  std::array<char, 64> text{};
  const auto opened = open_regular("/proc/sys/kernel/random/boot_id");
  const auto* file = std::get_if<RegularFile>(&opened);
  const std::size_t bytes =
      file == nullptr ? 0 : read_at(file->fd, 0, std::as_writable_bytes(std::span(text)));
  // The first 64 of 128 bits: "6f0b0d5a-91b4-4a2c-...".
  constexpr std::size_t kDigits = 16;
  std::string digits;
  for (const char c : std::span(text).first(bytes))
    if (c != '-' && digits.size() < kDigits)
      digits += c;
  const auto number = parse_number<std::uint64_t>(digits, 16);
  return number && *number != 0 ? *number : 1;
}

}  // namespace

FileIdentity identity_of(const struct stat& status) {
  return {.boot = boot_number(),
          .device = status.st_dev,
          .inode = status.st_ino,
          .changed_ns = nanoseconds(status.st_ctim)};
}

FileIdentity identity_at(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? identity_of(status) : FileIdentity{};
}

std::uint64_t boot_number() {
  static const std::uint64_t number = read_boot_number();
  return number;
}

}  // namespace pe
