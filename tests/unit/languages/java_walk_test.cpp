// SPDX-License-Identifier: MIT
#include "languages/java/walk.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <span>
#include <string>
#include <string_view>

#include "support/rule_text.h"

using namespace pe;
using languages::CodeBlob;

BOOST_AUTO_TEST_SUITE(java_walk)

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
    return to_string(languages::java_rule(
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

BOOST_AUTO_TEST_CASE(what_instructions_of_a_method_push_is_popped_later) {
  // As string_compare does: push rbp; sub rsp, 32; push rdx; je 16; pop rcx; jmp 20;
  // 16: add rsp, 8; 20: add rsp, 32; pop rbp; ret
  const Code code(std::string_view("\x55\x48\x83\xec\x20\x52\x74\x03\x59\xeb\x04"
                                   "\x48\x83\xc4\x08"
                                   "\x48\x83\xc4\x20\x5d\xc3",
                                   21),
                  6, 5);
  const char* const more = "cfa=rsp+56 rbp=cfa-16";
  BOOST_TEST(code.at(5) == kWhole);
  BOOST_TEST(code.at(6) == more);
  BOOST_TEST(code.at(8) == more);
  BOOST_TEST(code.at(9) == kWhole);
  BOOST_TEST(code.at(11) == more);
  BOOST_TEST(code.at(15) == kWhole);
  BOOST_TEST(code.at(19) == kPushed);
}

BOOST_AUTO_TEST_CASE(a_method_may_pop_its_stack_pointer) {
  // As string_indexof does: push rbp; sub rsp, 32; mov rcx, rsp; sub rsp, 16; push rcx; push rax;
  // pop rax; pop rsp; add rsp, 32; pop rbp; ret
  const Code code(std::string_view("\x55\x48\x83\xec\x20\x48\x8b\xcc\x48\x83\xec\x10\x51\x50"
                                   "\x58\x5c\x48\x83\xc4\x20\x5d\xc3",
                                   22),
                  6, 5);
  BOOST_TEST(code.at(13) == "cfa=*(rsp+0)+48 rbp=cfa-16");
  BOOST_TEST(code.at(14) == "cfa=*(rsp+8)+48 rbp=cfa-16");
  BOOST_TEST(code.at(16) == kWhole);
}

BOOST_AUTO_TEST_CASE(a_method_may_push_its_stack_pointer_last_of_four_words) {
  // As string_indexof does: push rbp; sub rsp, 32; mov rcx, rsp; push rax; push rsi; push rdi;
  // push rcx; pop rsp; add rsp, 32; pop rbp; ret
  const Code code(std::string_view("\x55\x48\x83\xec\x20\x48\x8b\xcc\x50\x56\x57"
                                   "\x51\x5c\x48\x83\xc4\x20\x5d\xc3",
                                   19),
                  6, 5);
  BOOST_TEST(code.at(8) == kWhole);
  BOOST_TEST(code.at(9) == "cfa=rsp+56 rbp=cfa-16");
  BOOST_TEST(code.at(10) == "cfa=rsp+64 rbp=cfa-16");
  BOOST_TEST(code.at(11) == "cfa=rsp+72 rbp=cfa-16");
  BOOST_TEST(code.at(12) == "cfa=*(rsp+0)+48 rbp=cfa-16");
  BOOST_TEST(code.at(13) == kWhole);
}

BOOST_AUTO_TEST_CASE(a_method_that_never_returns_has_pushed_nothing_where_it_calls) {
  // push rbp; sub rsp, 32; push rdx; pop rcx; call; hlt
  const Code code(std::string_view("\x55\x48\x83\xec\x20\x52\x59\xe8\x00\x00\x00\x00\xf4", 13), 6,
                  5);
  BOOST_TEST(code.at(5) == kWhole);
  BOOST_TEST(code.at(6) == "cfa=rsp+56 rbp=cfa-16");
  BOOST_TEST(code.at(7) == kWhole);
}

BOOST_AUTO_TEST_CASE(a_caller_goes_on_after_its_call) {
  // push rbp; sub rsp, 32; call; add rsp, 32; pop rbp; ret.  The call's last byte is that of a pop.
  const Code code(
      std::string_view("\x55\x48\x83\xec\x20\xe8\x00\x00\x00\x5a\x48\x83\xc4\x20\x5d\xc3", 16), 6,
      5);
  BOOST_TEST(code.at(9) == kWhole);
  // push rdx; call [r10]; pop rdx
  const Code pushed(
      std::string_view("\x55\x48\x83\xec\x20\x52\x41\xff\xd2\x5a\x48\x83\xc4\x20\x5d\xc3", 16), 6,
      5);
  BOOST_TEST(pushed.at(8) == "cfa=rsp+56 rbp=cfa-16");
}

BOOST_AUTO_TEST_CASE(code_that_is_not_understood_has_the_frame_that_its_blob_tells) {
  // push rbp; sub rsp, 32; pop rbp; ret: less than the frame; jmp rax: to another part
  const Code code(std::string_view("\x55\x48\x83\xec\x20\x90\x90\x5d\xc3", 9), 6, 5);
  BOOST_TEST(code.at(5) == kWhole);
  const Code table(std::string_view("\x55\x48\x83\xec\x20\x90\xff\xe0", 8), 6, 5);
  BOOST_TEST(table.at(5) == kWhole);
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
