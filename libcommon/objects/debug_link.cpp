// SPDX-License-Identifier: MIT
#include "objects/debug_link.h"

#include <climits>

namespace pe::objects {
namespace {

constexpr std::size_t kMinBuildIdBytes = 2;  // one byte for the folder, one for the file
constexpr std::size_t kMaxLinkedIdBytes = 64;

}  // namespace

std::optional<DebugLink> parse_debug_link(Bytes section) {
  constexpr std::size_t kAlignment = 4;
  ByteReader reader(section);
  const auto file = reader.take_string();
  if (!file || file->empty() || file->size() > NAME_MAX || *file == "." || *file == ".." ||
      file->find('/') != std::string_view::npos)
    return std::nullopt;
  const std::size_t past = (file->size() + 1) % kAlignment;
  const bool has_padding = reader.skip(past == 0 ? 0 : kAlignment - past);
  const auto crc = reader.take<std::uint32_t>();
  if (!has_padding || !crc)
    return std::nullopt;
  return DebugLink{std::string(*file), *crc};
}

std::optional<AltLink> parse_alt_link(Bytes section) {
  ByteReader reader(section);
  const auto path = reader.take_string();
  const Bytes build_id = reader.left();
  if (!path || path->empty() || path->size() >= PATH_MAX || build_id.size() < kMinBuildIdBytes ||
      build_id.size() > kMaxLinkedIdBytes)
    return std::nullopt;
  return AltLink{std::string(*path), {build_id.begin(), build_id.end()}};
}

std::string hex(Bytes build_id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kBase = 16;
  std::string text;
  text.reserve(build_id.size() * 2);
  for (const std::byte byte : build_id) {
    text += kDigits[std::to_integer<unsigned>(byte) / kBase];
    text += kDigits[std::to_integer<unsigned>(byte) % kBase];
  }
  return text;
}

}  // namespace pe::objects
