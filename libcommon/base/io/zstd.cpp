// SPDX-License-Identifier: MIT
#include "base/io/zstd.h"

#include <zstd.h>

#include "base/error.h"

namespace pe {

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

}  // namespace pe
