// Reads any file as a jitdump.  A reported range has a name that covers it.  Reading in steps of
// time gives the same result as reading all at once.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "names/jit_dump.h"
#include "support/memory_input.h"

namespace {

using pe::names::JitDump;

JitDump* opened(std::variant<JitDump, pe::names::JitMapFailure>& result) {
  return std::get_if<JitDump>(&result);
}

std::variant<JitDump, pe::names::JitMapFailure> check(std::string_view bytes) {
  return JitDump::check({pe::testing::memory_file(bytes), bytes.size(), 0});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  auto stepwise = check({data, size}), at_once = check({data, size});
  JitDump* const dump = opened(stepwise);
  if ((dump == nullptr) != (opened(at_once) == nullptr))
    std::abort();
  if (dump == nullptr)
    return 0;
  std::vector<std::uint64_t> told;
  const auto on_change = [&](std::uint64_t start, std::uint64_t end) {
    const auto found = dump->find(start);
    if (start >= end || !found || found->start != start || !dump->find(end - 1))
      std::abort();
    told.insert(told.end(), {start, end - 1});
  };
  for (unsigned bit = 0; bit < 64; bit += 7)
    dump->advance(std::uint64_t{1} << bit, on_change);
  dump->advance(~std::uint64_t{0}, on_change);
  JitDump& whole = *opened(at_once);
  whole.advance(~std::uint64_t{0}, [](std::uint64_t, std::uint64_t) {});
  if (whole.bad_records() != dump->bad_records())
    std::abort();
  for (const std::uint64_t avma : told) {
    const auto a = dump->find(avma), b = whole.find(avma);
    const auto line_a = dump->line_of(avma), line_b = whole.line_of(avma);
    if (!a || !b || a->name != b->name || a->offset != b->offset || !!line_a != !!line_b ||
        (line_a && (line_a->line != line_b->line || line_a->file != line_b->file)))
      std::abort();
    const auto frames_a = dump->frames_of(avma), frames_b = whole.frames_of(avma);
    if (!!frames_a != !!frames_b ||
        (frames_a && (frames_a->start != frames_b->start || frames_a->start > avma ||
                      !std::ranges::equal(frames_a->eh_frame, frames_b->eh_frame))))
      std::abort();
  }
  return 0;
}
