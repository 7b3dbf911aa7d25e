// SPDX-License-Identifier: MIT
#include "unwind/x86_64_instruction.h"

#include <boost/test/unit_test.hpp>
#include <span>
#include <string_view>

namespace {

using pe::unwind::Instruction;
using Flow = Instruction::Flow;

struct Expected {
  std::string_view code;
  std::size_t bytes;
  Flow flow;
  std::int64_t target = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(x86_64_instruction)

BOOST_AUTO_TEST_CASE(gives_length_flow_and_target) {
  using namespace std::string_view_literals;
  for (const Expected& each : {
           Expected{"\xc3\xff"sv, 1, Flow::kReturn},
           Expected{"\xf2\xc3"sv, 2, Flow::kReturn},      // bnd ret
           Expected{"\xc2\x08\x00"sv, 3, Flow::kReturn},  // ret 8
           Expected{"\xcb"sv, 1, Flow::kNext},            // a far return
           Expected{"\xeb\xfe"sv, 2, Flow::kJump, -2},
           Expected{"\xe9\x00\x01\x00\x00"sv, 5, Flow::kJump, 256},
           Expected{"\x74\x10"sv, 2, Flow::kBranch, 16},
           Expected{"\x0f\x85\xfc\xff\xff\xff"sv, 6, Flow::kBranch, -4},
           Expected{"\xe3\x05"sv, 2, Flow::kBranch, 5},             // jrcxz
           Expected{"\xff\xe0"sv, 2, Flow::kIndirectJump},          // jmp *%rax
           Expected{"\x3e\xff\xe0"sv, 3, Flow::kIndirectJump},      // notrack jmp *%rax
           Expected{"\xff\x28"sv, 2, Flow::kNext},                  // a far jump
           Expected{"\xe8\x00\x00\x00\x00"sv, 5, Flow::kNext},      // a call
           Expected{"\xff\xd0"sv, 2, Flow::kNext},                  // call *%rax
           Expected{"\xc6\xf8\xff"sv, 3, Flow::kNext},              // xabort
           Expected{"\x8f\xe8\x78\xc2\xec\x0e"sv, 6, Flow::kNext},  // vprotd (XOP)
           Expected{"\x62\xf1\x7c\x48\x10\x00"sv, 6, Flow::kNext},  // vmovups (EVEX)
       }) {
    const auto instruction = pe::unwind::decode_x86_64(std::as_bytes(std::span(each.code)));
    BOOST_REQUIRE(instruction);
    BOOST_TEST(instruction->bytes == each.bytes);
    BOOST_TEST((instruction->flow == each.flow));
    BOOST_TEST(instruction->target == each.target);
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_cut_off_or_no_instruction) {
  using namespace std::string_view_literals;
  for (const std::string_view code : {""sv, "\x66"sv, "\xe8\x00\x00"sv, "\x06"sv, "\x0f\x04"sv})
    BOOST_TEST(!pe::unwind::decode_x86_64(std::as_bytes(std::span(code))));
}

BOOST_AUTO_TEST_SUITE_END()
