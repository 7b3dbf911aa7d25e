// Walks the call chain of a sample, frame by frame, leaf first.
//
// The kernel writes a list of addresses with marks between them that show the owner of the
// following addresses (PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER; perf_event_open(2)).  A second mark
// of the same kind changes nothing here; pe-stream(5) explains its meaning.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "stream/records/sample.h"

namespace pe::stream {

struct CallChainEntry {
  /// The address to look up symbols for.  For the first frame of the kernel's and of the user's
  /// part, it is the instruction pointer.  For the others, it is one byte before the return
  /// address: otherwise a call at the very end of a function would belong to the next function.
  std::uint64_t lookup_address = 0;
  bool is_kernel = false;
};

namespace detail {

/// The owner of the addresses after a mark.
enum class ChainPart { kUser, kKernel, kOther };

inline ChainPart part_of_mark(std::uint64_t mark) {
  switch (static_cast<std::int64_t>(mark)) {
    case static_cast<std::int64_t>(PERF_CONTEXT_USER):
      return ChainPart::kUser;
    case static_cast<std::int64_t>(PERF_CONTEXT_KERNEL):
      return ChainPart::kKernel;
    default:
      return ChainPart::kOther;  // a guest's or a hypervisor's: no symbols available
  }
}

/// Reads the entries of a call chain one by one, leaf first.
class ChainWalk {
 public:
  explicit ChainWalk(bool in_kernel) : part_(in_kernel ? ChainPart::kKernel : ChainPart::kUser) {}

  /// Returns the frame of the next entry; nullopt if it is a mark, or of code without symbols.
  std::optional<CallChainEntry> take(std::uint64_t address) {
    if (is_mark(address)) {
      const auto marked = part_of_mark(address);
      is_first_ = is_first_ || marked != part_;
      part_ = marked;
      return std::nullopt;
    }
    const bool is_first = std::exchange(is_first_, false);
    if (part_ == ChainPart::kOther)
      return std::nullopt;
    return CallChainEntry{address - (is_first || address == 0 ? 0 : 1),
                          part_ == ChainPart::kKernel};
  }
  [[nodiscard]] ChainPart part() const noexcept { return part_; }

  static bool is_mark(std::uint64_t address) {
    return address >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX);
  }

 private:
  ChainPart part_;
  bool is_first_ = true;
};

inline bool is_in_kernel(std::uint16_t misc) {
  return (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

}  // namespace detail

/// Calls `on_frame(CallChainEntry)` for every frame.  A sample of an event without call chains has
/// one frame, its instruction pointer; a sample with an empty chain has none.
template <typename OnFrame>
void for_each_frame(const Sample& sample, std::uint16_t misc, OnFrame&& on_frame) {
  if (!sample.has_callchain) {
    on_frame(CallChainEntry{sample.ip, detail::is_in_kernel(misc)});
    return;
  }
  detail::ChainWalk walk(detail::is_in_kernel(misc));
  for (std::size_t i = 0; i < sample.callchain.size(); ++i)
    if (const auto entry = walk.take(sample.callchain[i]))
      on_frame(*entry);
}

/// Looks up the frames of call chains, except the outer frames that a chain shares with the last
/// one of its thread: two thirds of all frames of a compiler.
///
/// `Found` is what a look-up returns.  The caller may keep an `Extra` of each thread's last chain.
template <typename Found, typename Extra = char>
class ChainMemory {
 public:
  /// The frames of a chain.
  struct Chain {
    std::vector<Found> found;  ///< of each frame, outermost first
    std::size_t shared = 0;    ///< how many of them are those of the thread's last chain
    Extra extra{};             ///< as the caller left it after the thread's last chain
  };

  /// Calls `find(CallChainEntry)`, leaf first, for every frame that is not shared.  The result is
  /// valid until the next call.
  template <typename Find>
  Chain& follow(const Sample& sample, std::uint16_t misc, Find&& find) {
    Last& last = lasts_[sample.tid % lasts_.size()];
    Chain& chain = last.chain;
    const U64View words = sample.callchain;
    std::size_t shared = last.pid == sample.pid ? shared_words(words, last) : 0;
    detail::ChainWalk walk(detail::is_in_kernel(misc));
    fresh_.clear();
    if (!sample.has_callchain)
      fresh_.push_back(find(CallChainEntry{sample.ip, detail::is_in_kernel(misc)}));
    for (std::size_t i = 0; i < words.size() - shared; ++i) {
      if (const auto entry = walk.take(words[i]))
        fresh_.push_back(find(*entry));
      if (i + 1 == words.size() - shared && walk.part() != last.part)
        shared = 0;
    }
    chain.shared = shared;
    chain.found.resize(shared);
    chain.found.insert(chain.found.end(), fresh_.rbegin(), fresh_.rend());
    last.pid = sample.pid;
    last.part = walk.part();
    last.words.resize(words.size());
    if (words.size() > 0)
      std::memcpy(last.words.data(), words.bytes().data(), words.size() * sizeof last.words[0]);
    return chain;
  }

  /// What `find` has returned is no longer valid.
  void forget() {
    for (Last& last : lasts_)
      last.words.clear();
  }

 private:
  struct Last {
    std::uint32_t pid = 0;
    detail::ChainPart part = detail::ChainPart::kOther;  ///< of the outermost frame
    std::vector<std::uint64_t> words;
    Chain chain;
  };

  /// Counts the outer entries that need no look-up: all behind the last mark, each after an equal
  /// one, so that none is the first of its part.
  static std::size_t shared_words(const U64View& words, const Last& last) {
    if (last.part == detail::ChainPart::kOther)
      return 0;
    const std::size_t most = std::min(words.size(), last.words.size());
    std::size_t equal = 0;
    while (equal < most) {
      const std::uint64_t word = words[words.size() - 1 - equal];
      if (word != last.words[last.words.size() - 1 - equal] || detail::ChainWalk::is_mark(word))
        break;
      ++equal;
    }
    return equal == 0 ? 0 : equal - 1;
  }

  static constexpr std::size_t kThreads = 64;
  std::array<Last, kThreads> lasts_;  ///< by the lowest bits of the thread's number
  std::vector<Found> fresh_;          ///< leaf first
};

}  // namespace pe::stream
