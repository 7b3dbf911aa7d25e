// SPDX-License-Identifier: MIT
#include "io/deflate.h"

#include <libdeflate.h>

#include <memory>

#include "base/error.h"

namespace pe::io {

std::string deflate(std::string_view bytes, int level) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  if (!compressor)
    throw Error("deflate: not enough memory");
  std::string out(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(), out.data(),
                                      out.size()));
  return out;
}

}  // namespace pe::io
