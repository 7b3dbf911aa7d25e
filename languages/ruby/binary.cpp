// SPDX-License-Identifier: MIT
#include "languages/ruby/binary.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "languages/ruby/layout.h"

namespace pe::languages {
namespace {

bool is_data(const objects::Image& image, std::uint64_t svma) {
  return std::ranges::any_of(image.segments(), [svma](const objects::Segment& segment) {
    return !segment.executable && svma >= segment.svma &&
           svma - segment.svma < segment.memory_bytes;
  });
}

}  // namespace

std::optional<std::uint64_t> first_loaded_pointer(Bytes code, std::uint64_t svma) {
  // mov disp32(%rip), r64: REX.W, the opcode 8b, and a ModRM byte with mode 0 and base 5.
  constexpr unsigned kWide = 0x48, kWideMask = 0xfb, kLoad = 0x8b, kRelative = 0x05,
                     kRelativeMask = 0xc7;
  constexpr std::size_t kBytes = 7, kDistanceAt = 3;
  const auto byte = [&code](std::size_t at) { return std::to_integer<unsigned>(code[at]); };
  for (std::size_t at = 0; at + kBytes <= code.size(); ++at) {
    if ((byte(at) & kWideMask) != kWide || byte(at + 1) != kLoad ||
        (byte(at + 2) & kRelativeMask) != kRelative)
      continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, code.data() + at + kDistanceAt, sizeof distance);
    return svma + at + kBytes + static_cast<std::uint64_t>(std::int64_t{distance});
  }
  return std::nullopt;
}

bool complete_ruby(const objects::Image& image, std::span<const std::uint64_t> symbols,
                   ScriptBinary& binary) {
  constexpr std::uint64_t kBytesOfUser = 64;
  const std::uint64_t version = symbols[0], vm = symbols[1], user_of_vm = symbols[2];
  binary.runtime = vm;
  if (vm == 0 && user_of_vm != 0)
    if (const auto code = image.loaded_bytes(user_of_vm, kBytesOfUser))
      binary.runtime = first_loaded_pointer(code->bytes, user_of_vm).value_or(0);
  const auto numbers = loaded_memory(image).value<std::array<std::uint32_t, 2>>(version);
  if (version == 0 || !numbers || !is_data(image, binary.runtime))
    return false;
  binary.version = ruby_version((*numbers)[0], (*numbers)[1]);
  return true;
}

std::variant<ScriptLayout, std::string> layout_of_ruby(Memory& /*memory*/,
                                                       const ScriptBinary& binary,
                                                       std::uint64_t /*bias*/) {
  auto layout = ruby_layout(binary.version);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = ScriptLanguage::kRuby, .ruby = std::get<RubyLayout>(layout)};
}

}  // namespace pe::languages
