// SPDX-License-Identifier: MIT
#include "objects/compressed.h"

#include <elf.h>

#include <utility>

#include "base/io/compression.h"

namespace pe::objects {
namespace {

struct Compression {
  std::uint64_t type;
  std::uint64_t bytes;         ///< uncompressed
  std::uint64_t header_bytes;  ///< in front of the stream
};

template <typename Chdr>
std::optional<Compression> read_header(const Image& image, const Section& section) {
  Chdr header;
  if (section.bytes < sizeof header ||
      !image.read_at(section.file_offset, std::as_writable_bytes(std::span(&header, 1))))
    return std::nullopt;
  return Compression{header.ch_type, header.ch_size, sizeof header};
}

std::optional<Compression> compression_of(const Image& image, const Section& section) {
  return image.is_64_bit() ? read_header<Elf64_Chdr>(image, section)
                           : read_header<Elf32_Chdr>(image, section);
}

/// Returns the largest number of bytes that one byte can expand to; 0 for an unknown compression.
std::uint64_t max_ratio(std::uint64_t type) {
  constexpr std::uint64_t kOfDeflate = 1032;  // 258 bytes for two bits
  // A block of 4 bytes can represent 128 KiB of one byte; headers come on top.
  constexpr std::uint64_t kOfZstd = 32 * 1024;
  constexpr std::uint64_t kZstdType = 2;  // ELFCOMPRESS_ZSTD, which older elf.h lack
  return type == ELFCOMPRESS_ZLIB ? kOfDeflate : type == kZstdType ? kOfZstd : 0;
}

bool is_in_file(const Image& image, const Section& section) {
  return section.type != SHT_NOBITS && section.file_offset <= image.size_bytes() &&
         section.bytes <= image.size_bytes() - section.file_offset;
}

}  // namespace

bool is_compressed(const Section& section) noexcept {
  return (section.flags & SHF_COMPRESSED) != 0;
}

std::optional<std::uint64_t> uncompressed_bytes(const Image& image, const Section& section) {
  if (!is_in_file(image, section))
    return std::nullopt;
  if (!is_compressed(section))
    return section.bytes;
  const auto compression = compression_of(image, section);
  const std::uint64_t ratio = compression ? max_ratio(compression->type) : 0;
  if (ratio == 0 || compression->bytes / ratio > section.bytes)
    return std::nullopt;
  return compression->bytes;
}

std::optional<std::vector<std::byte>> read_uncompressed(const Image& image, const Section& section,
                                                        std::uint64_t limit_bytes) {
  const auto size = uncompressed_bytes(image, section);
  if (!size || *size > limit_bytes)
    return std::nullopt;
  auto content = image.read(section, limit_bytes);
  if (!content || !is_compressed(section))
    return content;
  const auto compression = compression_of(image, section);
  if (!compression || compression->bytes != *size)  // the file changed meanwhile
    return std::nullopt;
  if (!image.may_hold(*size))
    return std::nullopt;
  const Bytes stream = std::span(*content).subspan(compression->header_bytes);
  std::vector<std::byte> bytes(static_cast<std::size_t>(*size));
  const bool is_whole =
      compression->type == ELFCOMPRESS_ZLIB ? inflate(stream, bytes) : unzstd(stream, bytes);
  return is_whole ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace pe::objects
