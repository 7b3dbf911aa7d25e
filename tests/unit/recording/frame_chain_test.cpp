// SPDX-License-Identifier: MIT
#include "recording/ptrace/frame_chain.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <span>
#include <vector>

using pe::Bytes;
using pe::recording::FrameChain;

BOOST_AUTO_TEST_SUITE(frame_chain)

namespace {

constexpr std::uint64_t kSp = 0x7000'0000;

/// A stack of `words` words, whose frames have `frame_words` each; the last saved pointer is
/// `last`.
std::vector<std::uint64_t> stack_of(std::size_t words, std::size_t frame_words,
                                    std::uint64_t last) {
  std::vector<std::uint64_t> stack(words, 1);
  std::size_t at = 0;
  for (; at + frame_words < words; at += frame_words)
    stack[at] = kSp + 8 * (at + frame_words);
  stack[at] = last;
  return stack;
}

Bytes bytes_of(const std::vector<std::uint64_t>& stack) { return std::as_bytes(std::span(stack)); }

}  // namespace

BOOST_AUTO_TEST_CASE(the_copy_grows_as_far_as_the_frames_lead) {
  const auto stack = stack_of(40'000, 50, 0);
  FrameChain chain(kSp, kSp);
  const Bytes bytes = bytes_of(stack);
  std::size_t copied = 65'528;
  unsigned reads = 0;
  for (; const std::size_t missing = chain.missing(bytes.first(copied)); ++reads) {
    BOOST_REQUIRE(missing <= 50 * 8 + 256);
    BOOST_REQUIRE(copied < bytes.size());
    copied = std::min(copied + 16'384, bytes.size());
  }
  BOOST_TEST(copied == bytes.size());
  BOOST_TEST(reads == 16U);
}

BOOST_AUTO_TEST_CASE(a_chain_that_ends_in_the_copy_needs_no_more) {
  const auto stack = stack_of(8'000, 50, 0);
  BOOST_TEST(FrameChain(kSp, kSp).missing(bytes_of(stack)) == 0u);
}

BOOST_AUTO_TEST_CASE(a_register_that_is_no_frame_pointer_needs_no_more) {
  const auto stack = stack_of(8'000, 50, 0);
  for (const std::uint64_t fp : {std::uint64_t{0}, kSp - 8, kSp + 64'000 + 65'536, UINT64_MAX})
    BOOST_TEST(FrameChain(kSp, fp).missing(bytes_of(stack)) == 0u, fp);
}

// The stack is the target's: its values lead anywhere.
BOOST_AUTO_TEST_CASE(a_chain_that_goes_back_or_is_endless_ends) {
  for (const std::uint64_t last : {kSp, kSp + 8, UINT64_MAX}) {
    const auto stack = stack_of(8'000, 50, last);
    BOOST_TEST(FrameChain(kSp, kSp).missing(bytes_of(stack)) == 0u, last);
  }
  std::vector<std::uint64_t> endless(100'000);
  for (std::size_t i = 0; i < endless.size(); ++i)
    endless[i] = kSp + 8 * (i + 1);
  FrameChain chain(kSp, kSp);
  BOOST_TEST(chain.missing(bytes_of(endless).first(65'528)) == 0u);  // more than 4096 frames
  FrameChain unaligned(kSp, kSp + 65'525);
  BOOST_TEST(unaligned.missing(bytes_of(endless).first(65'528)) == 253u);
}

BOOST_AUTO_TEST_SUITE_END()
