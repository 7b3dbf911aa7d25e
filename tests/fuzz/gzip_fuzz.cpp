// Reads any bytes as gzip data.  Reading ends, and gives the same in pieces of any size.
// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "stackfold/gzip.h"
#include "support/memory_input.h"

namespace {

/// The data, up to 16 MiB, and the damage that the reader reports.
std::pair<std::string, std::string> unpack(std::string_view bytes, std::size_t piece) {
  pe::Input input = pe::testing::memory_input(bytes);
  pe::GzipReader gzip(input);
  constexpr std::size_t kMostBytes = 16UL << 20U;
  std::array<std::byte, 4096> buffer{};
  std::string text;
  while (text.size() < kMostBytes) {
    const std::size_t n = gzip.read(std::span(buffer).first(piece));
    if (n == 0)
      return {text, gzip.damage()};
    text.append(reinterpret_cast<const char*>(buffer.data()), n);
  }
  return {text.substr(0, kMostBytes), ""};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (unpack({data, size}, 4096) != unpack({data, size}, 1 + size % 100))
    std::abort();
  return 0;
}
