// SPDX-License-Identifier: MIT
#include "recording/probes/decoded_code.h"

#include <algorithm>

namespace pe::unwind {

std::optional<DecodedCode> DecodedCode::read(const objects::Image& image, std::uint64_t start,
                                             std::uint64_t end) {
  const auto first = objects::file_offset_of_code(image.segments(), start);
  const auto last = objects::file_offset_of_code(image.segments(), end - 1);
  if (!image.is_x86_64() || end <= start || end - start > kMostBytes || !first || !last ||
      *last - *first != end - 1 - start)
    return std::nullopt;
  DecodedCode code;
  code.start_ = start;
  code.bytes_.resize(end - start);
  if (!image.read_at(*first, code.bytes_))
    return std::nullopt;
  for (std::size_t at = 0; at < code.bytes_.size();) {
    const auto instruction = decode_x86_64(Bytes(code.bytes_).subspan(at));
    if (!instruction)
      return std::nullopt;
    const std::uint64_t next = start + at + instruction->bytes;
    code.steps_.push_back({.svma = start + at,
                           .target = next + static_cast<std::uint64_t>(instruction->target),
                           .bytes = static_cast<std::uint8_t>(instruction->bytes),
                           .flow = instruction->flow});
    at += instruction->bytes;
  }
  return code;
}

Bytes DecodedCode::bytes_of(const Step& step) const noexcept {
  return Bytes(bytes_).subspan(step.svma - start_, step.bytes);
}

std::optional<std::size_t> DecodedCode::number_at(std::uint64_t svma) const noexcept {
  if (!covers(svma))
    return std::nullopt;
  const auto after =
      std::upper_bound(steps_.begin(), steps_.end(), svma,
                       [](std::uint64_t wanted, const Step& step) { return wanted < step.svma; });
  return static_cast<std::size_t>(after - steps_.begin()) - 1;
}

}  // namespace pe::unwind
