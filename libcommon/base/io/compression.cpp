// SPDX-License-Identifier: MIT
#include "base/io/compression.h"

#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
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

namespace {

using Decompressor =
    std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>;

Decompressor make_decompressor() {
  Decompressor decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor)
    throw Error("inflate: not enough memory");
  return decompressor;
}

}  // namespace

bool inflate(Bytes bytes, std::span<std::byte> out) {
  return libdeflate_zlib_decompress(make_decompressor().get(), bytes.data(), bytes.size(),
                                    out.data(), out.size(), nullptr) == LIBDEFLATE_SUCCESS;
}

std::optional<std::string> inflate_all(Bytes bytes, std::size_t limit_bytes) {
  constexpr std::size_t kUsualRatio = 4;
  constexpr std::size_t kLeastBytes = 4096;
  const Decompressor decompressor = make_decompressor();
  std::string out;
  for (std::size_t size = std::max(kLeastBytes, kUsualRatio * bytes.size());; size *= 4) {
    out.resize(std::min(size, limit_bytes));
    std::size_t filled = 0;
    const auto result = libdeflate_zlib_decompress(decompressor.get(), bytes.data(), bytes.size(),
                                                   out.data(), out.size(), &filled);
    if (result == LIBDEFLATE_SUCCESS) {
      out.resize(filled);
      return out;
    }
    if (result != LIBDEFLATE_INSUFFICIENT_SPACE || out.size() == limit_bytes)
      return std::nullopt;
  }
}

std::uint32_t crc32(std::uint32_t so_far, Bytes bytes) noexcept {
  return libdeflate_crc32(so_far, bytes.data(), bytes.size());
}

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

bool unzstd(Bytes bytes, std::span<std::byte> out) {
  // ZSTD_decompress() returns an error as a number larger than any size.
  return ::ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size()) == out.size();
}

struct ZstdExpander::State {
  ZSTD_DStream* stream = ::ZSTD_createDStream();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() { ::ZSTD_freeDStream(stream); }
};

ZstdExpander::ZstdExpander() : state_(std::make_unique<State>()) {
  if (state_->stream == nullptr || ::ZSTD_isError(::ZSTD_initDStream(state_->stream)) != 0)
    throw Error("zstd: cannot be set up");
}

ZstdExpander::~ZstdExpander() = default;

std::optional<std::size_t> ZstdExpander::expand(Bytes& compressed, std::span<std::byte> into) {
  ZSTD_outBuffer out{into.data(), into.size(), 0};
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  while (!is_damaged_ && out.pos < out.size) {
    const std::size_t before = in.pos + out.pos;
    is_damaged_ = ::ZSTD_isError(::ZSTD_decompressStream(state_->stream, &out, &in)) != 0;
    if (in.pos + out.pos == before)
      break;  // neither the input nor zstd has bytes left
  }
  compressed = compressed.subspan(in.pos);
  return is_damaged_ ? std::nullopt : std::optional(out.pos);
}

struct ZstdCompressor::State {
  ZSTD_CStream* stream = ::ZSTD_createCStream();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() { ::ZSTD_freeCStream(stream); }
};

ZstdCompressor::ZstdCompressor() : state_(std::make_unique<State>()) {
  if (state_->stream == nullptr || ::ZSTD_isError(::ZSTD_initCStream(state_->stream, 1)) != 0)
    throw Error("zstd: cannot be set up");
}

ZstdCompressor::~ZstdCompressor() = default;

std::string_view ZstdCompressor::compress(std::string_view piece, After after) {
  ZSTD_inBuffer in{piece.data(), piece.size(), 0};
  std::size_t written = 0;
  for (std::size_t left = 1; left != 0;) {
    out_.resize(written + ::ZSTD_compressBound(piece.size()));
    ZSTD_outBuffer out{out_.data(), out_.size(), written};
    left = ::ZSTD_compressStream2(state_->stream, &out, &in,
                                  after == After::kEnd ? ZSTD_e_end : ZSTD_e_flush);
    if (::ZSTD_isError(left) != 0)
      throw Error("zstd: out of memory");
    written = out.pos;
  }
  return std::string_view(out_).substr(0, written);
}

}  // namespace pe
