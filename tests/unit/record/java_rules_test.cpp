// SPDX-License-Identifier: MIT
#include "record/runtime_code/java_rules.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <span>
#include <string>
#include <string_view>

#include "support/rule_text.h"

using namespace pe;
using runtimes::CodeBlob;

BOOST_AUTO_TEST_SUITE(java_rules)

namespace {

constexpr std::uint64_t kStart = 0x7000'0000;

struct Code {
  std::string bytes;
  CodeBlob blob;

  Code(std::string_view code, std::uint32_t frame_words, std::uint64_t complete) : bytes(code) {
    blob.code_start = kStart;
    blob.code_end = kStart + code.size();
    blob.frame_words = frame_words;
    blob.frame_complete = kStart + complete;
  }
  [[nodiscard]] std::string at(std::uint64_t offset) const {
    return to_string(record::java_rule(
        blob, kStart + offset, [this](std::uint64_t avma, std::span<std::byte> into) {
          const std::uint64_t from = avma - kStart;
          if (from > bytes.size() || into.size() > bytes.size() - from)
            return false;
          std::ranges::copy(std::as_bytes(std::span(bytes)).subspan(from, into.size()),
                            into.begin());
          return true;
        }));
  }
};

const char* const kReturn = "cfa=rsp+8";
const char* const kPushed = "cfa=rsp+16 rbp=cfa-16";
const char* const kWhole = "cfa=rsp+48 rbp=cfa-16";
const char* const kByRbp = "cfa=rbp+16 rbp=cfa-16";

}  // namespace

BOOST_AUTO_TEST_CASE(a_frame_grows_and_shrinks_in_compiled_code) {
  // mov [rsp-0x14000], eax; push rbp; sub rsp, 32; nop; add rsp, 32; pop rbp; cmp rsp, [r15+0x348];
  // ja; ret
  const Code code(std::string_view("\x89\x84\x24\x00\xc0\xfe\xff"
                                   "\x55"
                                   "\x48\x83\xec\x20"
                                   "\x90"
                                   "\x48\x83\xc4\x20"
                                   "\x5d"
                                   "\x49\x3b\xa7\x48\x03\x00\x00"
                                   "\x0f\x87\x01\x00\x00\x00"
                                   "\xc3",
                                   32),
                  6, 12);
  BOOST_TEST(code.at(0) == kReturn);
  BOOST_TEST(code.at(7) == kReturn);
  BOOST_TEST(code.at(8) == kPushed);
  BOOST_TEST(code.at(12) == kWhole);
  BOOST_TEST(code.at(13) == kWhole);
  BOOST_TEST(code.at(17) == kPushed);
  BOOST_TEST(code.at(18) == kReturn);
  BOOST_TEST(code.at(25) == kReturn);
  BOOST_TEST(code.at(31) == kReturn);
}

BOOST_AUTO_TEST_CASE(rbp_may_be_stored_after_the_stack_pointer_has_moved) {
  // sub rsp, 40; mov [rsp+32], rbp; nop
  const Code code(std::string_view("\x48\x81\xec\x28\x00\x00\x00\x48\x89\x6c\x24\x20\x90", 13), 6,
                  12);
  BOOST_TEST(code.at(0) == kReturn);
  BOOST_TEST(code.at(7) == "cfa=rsp+48");
  BOOST_TEST(code.at(12) == kWhole);
}

BOOST_AUTO_TEST_CASE(rbp_may_be_set_after_it_is_pushed) {
  const Code code("\x55\x48\x8b\xec\x48\x83\xec\x20\x90", 6, 8);  // push; mov rbp, rsp; sub
  BOOST_TEST(code.at(0) == kReturn);
  BOOST_TEST(code.at(1) == kPushed);
  BOOST_TEST(code.at(4) == kPushed);
  BOOST_TEST(code.at(8) == kWhole);
}

BOOST_AUTO_TEST_CASE(a_frame_without_room_is_whole_after_the_push) {
  const Code code("\x55\x90\x5d\xc3", 2, 1);
  BOOST_TEST(code.at(0) == kReturn);
  BOOST_TEST(code.at(1) == kPushed);
  BOOST_TEST(code.at(2) == kPushed);
  BOOST_TEST(code.at(3) == kReturn);
}

BOOST_AUTO_TEST_CASE(stubs_show_where_they_leave_whether_they_have_a_frame) {
  // push rbp; mov rbp, rsp; push rbx; nop; pop rbx; leave; ret
  const Code framed("\x55\x48\x8b\xec\x53\x90\x5b\xc9\xc3", 0, 0);
  BOOST_TEST(framed.at(0) == kReturn);
  BOOST_TEST(framed.at(1) == kPushed);
  BOOST_TEST(framed.at(4) == kByRbp);
  BOOST_TEST(framed.at(5) == kByRbp);
  BOOST_TEST(framed.at(8) == kReturn);
  // sub rsp, 16; nop; add rsp, 16; ret
  const Code with_room("\x48\x83\xec\x10\x90\x48\x83\xc4\x10\xc3", 0, 0);
  BOOST_TEST(with_room.at(0) == kReturn);
  BOOST_TEST(with_room.at(4) == "cfa=rsp+24");
  // mov rax, [rsi]; jmp [rbx+0x40]
  const Code jumping("\x48\x8b\x06\xff\x63\x40", 0, 0);
  BOOST_TEST(jumping.at(0) == kReturn);
  // 0: jne 4; 2: jmp 2; 4: ret
  const Code looping("\x75\x02\xeb\xfe\xc3", 0, 0);
  BOOST_TEST(looping.at(0) == kReturn);
}

BOOST_AUTO_TEST_CASE(frames_of_the_interpreter_have_the_callers_stack_pointer_below_rbp) {
  Code code("\x90\x90", 0, 0);
  code.blob.kind = CodeBlob::Kind::kInterpreter;
  BOOST_TEST(code.at(1) == "cfa=*(rbp-8) rbp=*rbp ip=*(rbp+8)");
}

BOOST_AUTO_TEST_CASE(unreadable_code_has_the_frame_that_its_blob_tells) {
  Code code("\x90\x90\x90\x90", 6, 0);
  code.bytes.clear();
  BOOST_TEST(code.at(2) == kWhole);
}

BOOST_AUTO_TEST_SUITE_END()
