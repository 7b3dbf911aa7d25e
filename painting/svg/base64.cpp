// SPDX-License-Identifier: MIT
#include "painting/svg/base64.h"

#include <cstddef>
#include <cstdint>

namespace pe::painting {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  std::size_t end = out.size();
  out.resize(end + (bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t group =
        byte_at(bytes, at) << 16U | byte_at(bytes, at + 1) << 8U | byte_at(bytes, at + 2);
    out[end] = kDigits[group >> 18U];
    out[end + 1] = kDigits[group >> 12U & 63U];
    out[end + 2] = at + 1 < bytes.size() ? kDigits[group >> 6U & 63U] : '=';
    out[end + 3] = at + 2 < bytes.size() ? kDigits[group & 63U] : '=';
    end += 4;
  }
}

}  // namespace pe::painting
