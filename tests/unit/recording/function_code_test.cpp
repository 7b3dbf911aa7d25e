// Code counts only if it is reached, and only such a place may have a probe.
// SPDX-License-Identifier: MIT
#include "recording/probes/function_code.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "objects/symbol_table.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/probe_place.h"
#include "support/costly.h"

using pe::objects::Image;
using pe::unwind::FunctionRanges;

#define FUNCTION(NAME, CODE)                                                                \
  ".type " NAME ", @function\n" NAME ":\n.cfi_startproc\n" CODE ".cfi_endproc\n.size " NAME \
  ", . - " NAME "\n"
#define PLACE(NAME) ".type " NAME ", @function\n.size " NAME ", 1\n" NAME ":\n"

// The names of places are symbols, so that the tests find their addresses.
asm(".pushsection .text\n"
    // A table of bytes, one of which is that of `ret`, between a jump and its target.
    FUNCTION("odd_table", "jmp odd_table_end\n" PLACE("odd_table_data") ".byte 0x90, 0xc3, 0x90\n"
             PLACE("odd_table_end") "ret\n")
    // The data looks like an instruction that has the target of the jump inside of it.
    FUNCTION("odd_desync", "jmp 1f\n.byte 0xb8\n1: ret\nnop\nnop\nnop\nnop\n")
    FUNCTION("odd_inside", "lea 1(%rdi, %rdi, 2), %eax\nret\n")
    FUNCTION("odd_switch", "cmp $1, %edi\nja 9f\nlea odd_jumps(%rip), %rdx\nmov %edi, %eax\n"
             "movslq (%rdx, %rax, 4), %rax\nadd %rdx, %rax\njmp *%rax\n"
             "1: ret\n" PLACE("odd_case") "2: nop\nret\n9: ret\n")
    // One of the entries leads into the middle of an instruction.
    FUNCTION("odd_bad_switch", "push %rbx\ncmp $1, %edi\nja 9f\nlea odd_bad_jumps(%rip), %rdx\n"
             "mov %edi, %eax\nmovslq (%rdx, %rax, 4), %rax\nadd %rdx, %rax\njmp *%rax\n"
             "3: mov $5, %eax\npop %rbx\nret\n9: pop %rbx\nret\n")
    // Only an exception leads to the last two instructions.
    ".type odd_catches, @function\nodd_catches:\n.cfi_startproc\n.cfi_lsda 0x1b, odd_exceptions\n"
    "call odd_inside\nret\nodd_pad: nop\nret\n.cfi_endproc\n.size odd_catches, . - odd_catches\n"
    // A part that the compiler has moved away, and the only jump to its second instruction.
    FUNCTION("odd_part", "ret\n" PLACE("odd_part_entry") "nop\nud2\n")
    FUNCTION("odd_whole", "test %edi, %edi\nje odd_part_entry\nret\n")
    ".popsection\n.pushsection .rodata\n.balign 4\n"
    "odd_jumps: .long 1b - odd_jumps, 2b - odd_jumps\n.long 0\n"
    "odd_bad_jumps: .long 3b - odd_bad_jumps, 3b + 1 - odd_bad_jumps\n.long 0\n"
    ".popsection\n"
    // No base and no types; the entries are numbers of four bytes.
    ".pushsection .gcc_except_table, \"a\"\nodd_exceptions: .byte 0xff, 0xff, 3, 13\n"
    ".long 0, 5, odd_pad - odd_catches\n.byte 0\n.popsection\n");

#undef FUNCTION
#undef PLACE

BOOST_AUTO_TEST_SUITE(function_code)

namespace {

struct Own {
  Own() : image(std::get<Image>(Image::open("/proc/self/exe"))), ranges(image) {
    pe::objects::for_each_function(image, [this](const pe::objects::FunctionSymbol& symbol) {
      places.emplace(std::string(symbol.name), symbol.svma);
    });
  }
  Image image;
  FunctionRanges ranges;
  std::map<std::string, std::uint64_t> places;

  /// Returns how far the exits are from the start of the function.
  [[nodiscard]] pe::unwind::FunctionExits exits(const std::string& name) const {
    auto found = find_exits(image, ranges, places.at(name));
    for (std::uint64_t& svma : found.svmas)
      svma -= places.at(name);
    return found;
  }
  [[nodiscard]] std::string problem(const std::string& name, std::uint64_t offset = 0) const {
    return problem_of_place(image, ranges, std::nullopt, places.at(name) + offset);
  }
};

const Own& own() {
  static const Own kOwn;
  return kOwn;
}

constexpr std::string_view kUnknown = "it is unknown whether an instruction starts there";

}  // namespace

BOOST_AUTO_TEST_CASE(data_between_a_jump_and_its_target_is_no_exit) {
  const auto exits = own().exits("odd_table");
  BOOST_TEST(exits.problem == "");
  const auto end = own().places.at("odd_table_end") - own().places.at("odd_table");
  BOOST_TEST(exits.svmas == std::vector<std::uint64_t>{end}, boost::test_tools::per_element());
  BOOST_TEST(exits.are_own);
}

BOOST_AUTO_TEST_CASE(data_must_not_have_a_probe, *pe::tests::costly()) {
  BOOST_TEST(own().problem("odd_table_data").starts_with(kUnknown));
  BOOST_TEST(own().problem("odd_table_data", 1).starts_with(kUnknown));
  BOOST_TEST(own().problem("odd_table_end") == "");
}

BOOST_AUTO_TEST_CASE(a_jump_into_an_instruction_shows_that_the_code_is_not_understood) {
  BOOST_TEST(own().exits("odd_desync").problem == "its code cannot be decoded");
  BOOST_TEST(own().problem("odd_desync") == "");
  BOOST_TEST(own().problem("odd_desync", 2).starts_with(kUnknown));
}

BOOST_AUTO_TEST_CASE(the_middle_of_an_instruction_must_not_have_a_probe) {
  BOOST_TEST(own().problem("odd_inside") == "");
  BOOST_TEST(own().problem("odd_inside", 2).starts_with("this is inside the instruction at"));
  BOOST_TEST(own().problem("odd_inside", 4) == "");
}

BOOST_AUTO_TEST_CASE(a_jump_table_leads_to_code) {
  const auto exits = own().exits("odd_switch");
  BOOST_TEST(exits.svmas.size() == 3U);
  BOOST_TEST(exits.are_own);
  BOOST_TEST(own().problem("odd_case") == "");
}

BOOST_AUTO_TEST_CASE(a_table_with_a_wrong_entry_leads_nowhere) {
  const auto exits = own().exits("odd_bad_switch");
  BOOST_TEST(exits.problem == "");
  BOOST_TEST(exits.svmas.size() == 1U);
  BOOST_TEST(exits.unseen == 1U);
  BOOST_TEST(!exits.are_own);
}

BOOST_AUTO_TEST_CASE(the_handler_of_an_exception_is_code) {
  const auto exits = own().exits("odd_catches");
  BOOST_TEST(exits.svmas == (std::vector<std::uint64_t>{5U, 7U}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(another_function_leads_into_a_moved_part) {
  BOOST_TEST(own().problem("odd_part_entry") == "");
  BOOST_TEST(own().problem("odd_part_entry", 1) == "");
}

BOOST_AUTO_TEST_CASE(other_functions_are_followed_until_the_time_for_that_is_used_up) {
  const auto problem = [&](std::uint64_t& left_ns) {
    return problem_of_place(own().image, own().ranges, std::nullopt,
                            own().places.at("odd_part_entry"), &left_ns);
  };
  constexpr std::uint64_t kMuch = ~std::uint64_t{0};
  std::uint64_t much_ns = kMuch, little_ns = 1;
  BOOST_TEST(problem(much_ns) == "");
  BOOST_TEST(much_ns < kMuch);
  BOOST_TEST(problem(little_ns).starts_with(kUnknown));
  BOOST_TEST(little_ns == 0U);
  BOOST_TEST(problem(little_ns).starts_with(kUnknown));  // the places of a file share it
}

BOOST_AUTO_TEST_CASE(without_unwind_information_a_symbol_states_where_code_is) {
  const FunctionRanges none;
  const auto start = own().places.at("odd_inside");
  const auto problem = [&](std::uint64_t svma) {
    return problem_of_place(own().image, none, FunctionRanges::Range{start, start + 5}, svma);
  };
  BOOST_TEST(problem(start) == "");
  BOOST_TEST(problem(start + 1).starts_with("this is inside the instruction at"));
  BOOST_TEST(problem(start + 5).starts_with(kUnknown));
}

BOOST_AUTO_TEST_SUITE_END()
