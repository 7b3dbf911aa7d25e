// Reads any bytes as code of a HotSpot JVM.  The first four give the frame's words, and where the
// frame is complete.  Each instruction has a rule by which a walk goes up.
// SPDX-License-Identifier: MIT
#include "languages/java/walk.h"

#include <algorithm>
#include <span>

#include "base/byte_reader.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using namespace pe;
  using testing::require;
  constexpr std::uint64_t kStart = 0x7000'0000;
  ByteReader reader(Bytes(data, size));
  const auto words = reader.take<std::uint16_t>();
  const auto complete = reader.take<std::uint16_t>();
  const Bytes code = reader.left();
  if (!complete || code.empty() || code.size() > 4096)
    return 0;
  languages::CodeBlob blob;
  blob.code_start = kStart;
  blob.code_end = kStart + code.size();
  blob.frame_words = *words;
  blob.frame_complete = kStart + *complete % code.size();
  for (std::size_t at = 0; at < code.size(); at += 1 + code.size() / 64) {
    const auto rule =
        languages::java_rule(blob, kStart + at, [&](std::uint64_t avma, std::span<std::byte> into) {
          const std::uint64_t from = avma - kStart;
          if (from > code.size() || into.size() > code.size() - from)
            return false;
          std::ranges::copy(code.subspan(from, into.size()), into.begin());
          return true;
        });
    const bool is_by_stack = rule.kind() == unwind::RuleKind::kStackPointer;
    require(is_by_stack || rule.kind() == unwind::RuleKind::kFramePointer);
    require(rule.cfa_words() > 0 && rule.frame_pointer_slot() <= rule.cfa_words());
  }
  return 0;
}
