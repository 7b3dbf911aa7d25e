// SPDX-License-Identifier: MIT
#include "stackfold/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"

namespace pe {
namespace {

constexpr std::size_t kChunkBytes = 64UL * 1024;
constexpr int kGzipWindow = 16 + MAX_WBITS;  // zlib.h, inflateInit2: a gzip header, not a zlib one

Bytef* as_zlib(std::byte* bytes) { return reinterpret_cast<Bytef*>(bytes); }

}  // namespace

struct GzipReader::State {
  z_stream zlib{};
  std::array<std::byte, kChunkBytes> compressed{};
};

bool is_gzip(Bytes head) noexcept {
  return head.size() >= 2 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b};
}

GzipReader::GzipReader(Input& input) : input_(input), state_(std::make_unique<State>()) {
  if (::inflateInit2(&state_->zlib, kGzipWindow) != Z_OK)
    throw Error(input.name() + ": zlib: cannot be set up");
}

GzipReader::~GzipReader() { ::inflateEnd(&state_->zlib); }

/// Reads more if all is decompressed; false at the end of the input.
bool GzipReader::fill() {
  z_stream& zlib = state_->zlib;
  if (zlib.avail_in > 0)
    return true;
  const std::size_t n = input_.read(state_->compressed);
  zlib.next_in = as_zlib(state_->compressed.data());
  zlib.avail_in = static_cast<uInt>(n);
  return n > 0;
}

/// Starts the next gzip member after the end of one; false if no gzip data follows.
bool GzipReader::begin_next_member() {
  return fill() && *state_->zlib.next_in == 0x1f && ::inflateReset(&state_->zlib) == Z_OK;
}

std::size_t GzipReader::read(std::span<std::byte> into) {
  z_stream& zlib = state_->zlib;
  const std::size_t wanted = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max());
  zlib.next_out = as_zlib(into.data());
  zlib.avail_out = static_cast<uInt>(wanted);
  while (!at_end_ && zlib.avail_out > 0) {
    fill();  // at the end of the input zlib may still hold output that did not fit the buffer
    const int status = ::inflate(&zlib, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      at_end_ = !begin_next_member();
    } else if (status != Z_OK) {
      damage_ = status == Z_BUF_ERROR ? "the gzip data is cut off" : "the gzip data is damaged";
      at_end_ = true;
    }
  }
  return wanted - zlib.avail_out;
}

namespace {

/// Reads all bytes from `read`, up to the limit.  False if there are more.
template <typename Read>
bool read_all(std::string& bytes, std::size_t limit_bytes, Read&& read) {
  constexpr std::size_t kStep = 256UL * 1024;
  for (;;) {
    const std::size_t old_size = bytes.size();
    bytes.resize(old_size + kStep);
    const std::size_t n = read(std::as_writable_bytes(std::span(bytes).subspan(old_size)));
    bytes.resize(old_size + n);
    if (n == 0)
      return true;
    if (bytes.size() > limit_bytes)
      return false;
  }
}

}  // namespace

std::string read_unpacked(Input& input, std::size_t limit_bytes, std::string& damage) {
  std::string bytes;
  bool is_whole = true;
  if (is_gzip(input.peek(2))) {
    GzipReader gzip(input);
    is_whole =
        read_all(bytes, limit_bytes, [&](std::span<std::byte> into) { return gzip.read(into); });
    damage = gzip.damage();
  } else {
    is_whole =
        read_all(bytes, limit_bytes, [&](std::span<std::byte> into) { return input.read(into); });
  }
  if (!is_whole)
    damage = "the profile is larger than " + std::to_string(limit_bytes >> 20U) + " MiB";
  return bytes;
}

}  // namespace pe
