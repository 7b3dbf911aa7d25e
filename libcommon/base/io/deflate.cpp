// SPDX-License-Identifier: MIT
#include "base/io/deflate.h"

#include <libdeflate.h>

#include <memory>

#include "base/error.h"

namespace pe {
namespace {

template <typename Bound, typename Compress>
std::string compressed(std::string_view bytes, int level, Bound&& bound, Compress&& compress) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  if (!compressor)
    throw Error("deflate: not enough memory");
  std::string out(bound(compressor.get(), bytes.size()), '\0');
  out.resize(compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

}  // namespace

std::string deflate(std::string_view bytes, int level) {
  return compressed(bytes, level, libdeflate_zlib_compress_bound, libdeflate_zlib_compress);
}

std::string gzip(std::string_view bytes, int level) {
  return compressed(bytes, level, libdeflate_gzip_compress_bound, libdeflate_gzip_compress);
}

bool inflate(Bytes bytes, std::span<std::byte> out) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor)
    throw Error("inflate: not enough memory");
  return libdeflate_zlib_decompress(decompressor.get(), bytes.data(), bytes.size(), out.data(),
                                    out.size(), nullptr) == LIBDEFLATE_SUCCESS;
}

std::uint32_t crc32(std::uint32_t so_far, Bytes bytes) noexcept {
  return libdeflate_crc32(so_far, bytes.data(), bytes.size());
}

}  // namespace pe
