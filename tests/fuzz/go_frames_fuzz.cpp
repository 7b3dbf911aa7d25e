// Reads any bytes as a Go program's table of functions.  The call frame information made from it
// can be read, and has no more than the promised size.  Names are in the table, and shorter than
// 4 KiB.
// SPDX-License-Identifier: MIT
#include "unwind/walk/go_frames.h"

#include "check_cfi.h"
#include "objects/go_functions.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using namespace pe::unwind;
  constexpr std::uint64_t kText = 0x401000;
  const pe::objects::GoFunctions functions(pe::Bytes(data, size), kText);
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (const auto function = functions.function(i); function && !function->name.empty()) {
      const auto* name = reinterpret_cast<const std::byte*>(function->name.data());
      pe::testing::check(name >= data && name + function->name.size() < data + size);
      pe::testing::check(function->name.size() < 4096);
    }
  const auto frames = go_frames(pe::Bytes(data, size), kText);
  constexpr std::size_t kMostOfFunction = std::size_t{1} << 24;
  pe::testing::check(frames.size() <= kMaxGoFramesBytes + kMostOfFunction + 8 * size);
  if (frames.empty())
    return 0;
  const CfiSection section(CfiFormat::kDebugFrame, {frames, 0});
  pe::testing::check_index(section);
  UnwindTable table(section);
  pe::testing::check_rules(table, {&section, 1});
  return 0;
}
