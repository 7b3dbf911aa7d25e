// SPDX-License-Identifier: MIT
#include "base/io/xz.h"

#include <lzma.h>

#include <algorithm>

namespace pe {
namespace {

/// Limit of liblzma's own memory: data of `xz -9` needs 65 MiB to decompress.
constexpr std::uint64_t kMaxDecoderBytes = std::uint64_t{68} << 20;

struct Decoder {
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  Decoder(Decoder&&) = delete;
  Decoder& operator=(Decoder&&) = delete;
  ~Decoder() { lzma_end(&stream); }
  lzma_stream stream = LZMA_STREAM_INIT;
};

}  // namespace

std::optional<std::vector<std::byte>> unxz(Bytes bytes, std::uint64_t limit_bytes) {
  constexpr std::uint64_t kFirstBytes = 64 * 1024;
  Decoder decoder;
  lzma_stream& stream = decoder.stream;
  if (lzma_stream_decoder(&stream, kMaxDecoderBytes, 0) != LZMA_OK)
    return std::nullopt;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  std::vector<std::byte> out;
  for (;;) {
    if (stream.avail_out == 0) {
      if (out.size() >= limit_bytes)
        return std::nullopt;
      const std::size_t filled = out.size();
      out.resize(static_cast<std::size_t>(
          std::min<std::uint64_t>(limit_bytes, std::max<std::uint64_t>(kFirstBytes, filled * 2))));
      stream.next_out = reinterpret_cast<std::uint8_t*>(out.data() + filled);
      stream.avail_out = out.size() - filled;
    }
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    if (result == LZMA_STREAM_END)
      break;
    if (result != LZMA_OK)
      return std::nullopt;
  }
  out.resize(out.size() - stream.avail_out);
  return out;
}

}  // namespace pe
