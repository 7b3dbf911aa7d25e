// SPDX-License-Identifier: MIT
#include "languages/node/walk.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string_view>

#include "languages/node/embedded.h"

using namespace pe;
using languages::V8CodeFields;
using unwind::Rule;
using unwind::RuleKind;

BOOST_AUTO_TEST_SUITE(node_walk)

namespace {

constexpr std::uint64_t kStart = 0x1000;
const Rule kNoFrame(RuleKind::kStackPointer, 1, 0), kPushed(RuleKind::kStackPointer, 2, 2),
    kInFrame(RuleKind::kFramePointer, 2, 2);

struct Code {
  std::string_view bytes;
  V8CodeFields::Kind kind = V8CodeFields::Kind::kTurbofan;
  [[nodiscard]] Rule at(std::uint64_t offset) const {
    const V8CodeFields code{.start = kStart, .end = kStart + bytes.size(), .kind = kind};
    return languages::v8_rule(code, kStart + offset, [this](std::uint64_t avma, auto into) {
      if (avma < kStart || avma - kStart + into.size() > bytes.size())
        return false;
      std::ranges::transform(bytes.substr(avma - kStart, into.size()), into.begin(),
                             [](char c) { return static_cast<std::byte>(c); });
      return true;
    });
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(knows_where_a_frame_starts_and_ends) {
  using namespace std::string_view_literals;
  // push rbp; mov rbp, rsp; push rsi; call; mov rsp, rbp; pop rbp; ret 16
  const Code code{"\x55\x48\x89\xe5\x56\xe8\x00\x00\x00\x00\x48\x8b\xe5\x5d\xc2\x10\x00\xcc"sv};
  BOOST_CHECK(code.at(0) == kNoFrame);
  BOOST_CHECK(code.at(1) == kPushed);
  BOOST_CHECK(code.at(4) == kInFrame);
  BOOST_CHECK(code.at(9) == kInFrame);   // before the call's return address
  BOOST_CHECK(code.at(13) == kInFrame);  // rsp is rbp
  BOOST_CHECK(code.at(14) == kNoFrame);
  BOOST_CHECK(code.at(17) == kInFrame);  // after the return
  BOOST_CHECK(code.at(18) == kInFrame);  // outside
}

BOOST_AUTO_TEST_CASE(a_check_may_precede_the_frame) {
  using namespace std::string_view_literals;
  // mov rbx, [rcx - 8]; test; push rbp; mov rbp, rsp
  const Code code{"\x48\x8b\x59\xf8\x85\xdb\x55\x48\x8b\xec\x90\x90"sv};
  BOOST_CHECK(code.at(0) == kNoFrame);
  BOOST_CHECK(code.at(6) == kNoFrame);
  BOOST_CHECK(code.at(7) == kPushed);
  BOOST_CHECK(code.at(10) == kInFrame);
}

BOOST_AUTO_TEST_CASE(the_first_call_of_baseline_code_makes_its_frame) {
  using namespace std::string_view_literals;
  // mov rcx, rax; call; nop
  const Code code{"\x48\x89\xc1\xe8\x00\x00\x00\x00\x90\x90"sv, V8CodeFields::Kind::kBaseline};
  BOOST_CHECK(code.at(0) == kNoFrame);
  BOOST_CHECK(code.at(3) == kNoFrame);
  BOOST_CHECK(code.at(7) == kInFrame);
  BOOST_CHECK(code.at(8) == kInFrame);
}

BOOST_AUTO_TEST_CASE(finds_the_version_of_v8_in_a_text) {
  using languages::V8Version;
  BOOST_TEST((languages::v8_version_in("x 13.6.233.17-node.63") == V8Version{13, 6}));
  BOOST_TEST((languages::v8_version_in("a-node.1 b 10.2.154-node.2") == V8Version{10, 2}));
  BOOST_TEST(!languages::v8_version_in("999.1.2-node.3"));
  BOOST_TEST(!languages::v8_version_in("13.6.233.17"));
  BOOST_TEST(!languages::v8_version_in("-node."));
}

BOOST_AUTO_TEST_SUITE_END()
