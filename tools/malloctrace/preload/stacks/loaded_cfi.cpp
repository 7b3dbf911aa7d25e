// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/loaded_cfi.h"

#include "unwind/cfi/eh_frame_header.h"

namespace pe::unwind {
namespace {

/// Returns the bytes from `avma` to the end of the image.
Bytes bytes_from(const LoadedImage& image, std::uint64_t avma) noexcept {
  const auto* first =
      reinterpret_cast<const std::byte*>(avma);  // NOLINT(performance-no-int-to-ptr)
  return avma >= image.start && avma <= image.end ? Bytes(first, image.end - avma) : Bytes();
}

}  // namespace

std::optional<LoadedFde> find_loaded_fde(const LoadedImage& image, std::uint64_t avma) noexcept {
  const std::uint64_t header_avma = image.frame_header;
  const auto header = read_eh_frame_header(bytes_from(image, header_avma), header_avma);
  if (!header || !header->frames_svma)
    return std::nullopt;
  const auto number = header->table.find(avma);
  if (!number)
    return std::nullopt;
  const std::uint64_t frames_avma = *header->frames_svma;
  const CfiEntries entries(CfiFormat::kEhFrame, bytes_from(image, frames_avma), frames_avma,
                           header_avma);
  const auto fde = entries.fde_at(header->table.fde_svma(*number) - frames_avma);
  return fde && fde->covers(avma) ? std::optional(LoadedFde{*fde, header_avma}) : std::nullopt;
}

}  // namespace pe::unwind
