// Walks untrusted stacks with untrusted tables.  Every walk ends and reads only the copied bytes
// (the sanitizers check this).  It gives the same with an empty cache, a full cache, a history, and
// all registers.
//
// Input: a byte of flags; eight programs of functions, each a length byte and its bytes; words of
// the stack, each a byte with the kind of the word, then one or eight bytes with its value.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/walks.h"

namespace {

using namespace pe::unwind;
using pe::testing::FakeCode;
using pe::testing::kFakeCode;
using pe::testing::kFakeStack;
using pe::testing::Walked;

constexpr std::size_t kFunctions = 8;
/// a function that a signal handler returns to, if a flag says so
constexpr std::size_t kSignal = 5;
constexpr std::size_t kMaxWords = 512;

void check(bool holds) {
  if (!holds)
    std::abort();
}

std::vector<std::string> take_programs(pe::ByteReader& in) {
  std::vector<std::string> programs;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    const auto size = in.take<std::uint8_t>().value_or(0);
    const auto bytes = in.take_bytes(std::min<std::size_t>(size, in.left().size()));
    programs.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  return programs;
}

/// An address in the code, an address in the stack, or any number.
std::uint64_t take_word(pe::ByteReader& in) {
  const auto kind = in.take<std::uint8_t>().value_or(0);
  const auto which = std::uint64_t{in.take<std::uint8_t>().value_or(0)};
  switch (kind % 4) {
    case 0:
      return kFakeCode + 0x100 * (kind / 4 % (kFunctions + 2)) + which;
    case 1:
      return kFakeStack + 8 * which;
    case 2:
      return which;
    default:
      return in.take<std::uint64_t>().value_or(which);
  }
}

void check_walk(const Walked& walked, std::size_t words, std::size_t room) {
  check(walked.frames.size() <= room);
  // Each frame is at least a byte above the one before, unless that one was interrupted.  The last
  // frame may be on another stack.
  check(walked.frames.size() <= 2 * 8 * words + 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  pe::ByteReader in(pe::Bytes(data, size));
  const auto flags = in.take<std::uint8_t>().value_or(0);
  FakeCode fake(take_programs(in),
                (flags & 32) != 0 ? std::optional<std::size_t>(kSignal) : std::nullopt);
  AddressSpace space = fake.space();
  if ((flags & 1) != 0)
    space.map({kFakeCode + 0x180, kFakeCode + 0x280, 0, std::nullopt});
  if ((flags & 2) != 0)
    space.unmap(kFakeCode + 0x480, kFakeCode + 0x500);

  WalkStart start;
  start.is_caller = (flags & 4) != 0;
  for (unsigned number = 0; number < architecture::kRegisterCount; ++number)
    start.registers.set(number, take_word(in));
  if ((flags & 8) == 0)
    start.registers.set(architecture::kStackPointer, kFakeStack);
  const std::size_t room = (flags & 16) != 0 ? 5 : 600;
  const std::size_t change = in.take<std::uint8_t>().value_or(0);
  const std::uint64_t changed = take_word(in);
  std::vector<std::uint64_t> words;
  while (!in.empty() && words.size() < kMaxWords)
    words.push_back(take_word(in));
  words.shrink_to_fit();

  static RuleCache cache;  // shared by all inputs: a new cache costs ten times as much as a walk
  Walker walker(cache);
  ThreadHistory history;
  for (int round = 0; round < 3; ++round) {
    const Walked slow = pe::testing::walk_slowly(space, start, words, room);
    check_walk(slow, words.size(), room);
    check(pe::testing::walk(walker, space, start, words, nullptr, room) == slow);
    const Walked compared = pe::testing::walk(walker, space, start, words, &history, room);
    check(compared == slow && compared.sps == slow.sps);
    // The next stack differs in one word; the last stack is the first one again.
    if (change < words.size())
      words[change] = round == 0 ? changed : words[change] ^ changed;
  }
  return 0;
}
