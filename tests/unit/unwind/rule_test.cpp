// Executes rules and general rows on a stack of sixteen words.
// SPDX-License-Identifier: MIT
#include "unwind/rule.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "support/cfi_builder.h"
#include "support/rule_text.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/row_step.h"

BOOST_AUTO_TEST_SUITE(rule)

namespace {

using pe::testing::CfiBuilder;
using pe::testing::code;
using namespace pe::unwind;
using architecture::execute;
using architecture::Registers;

constexpr std::uint64_t kStack = 0x7fff'0000;

/// Words 0 to 15 at kStack.  Word i is 0x100 + i unless a test changes it.
class FakeStack {
 public:
  FakeStack() {
    for (std::size_t i = 0; i < words_.size(); ++i)
      words_[i] = 0x100 + i;
  }
  std::uint64_t& operator[](std::size_t i) { return words_[i]; }
  [[nodiscard]] StackView view() const { return {kStack, std::as_bytes(std::span(words_))}; }

 private:
  std::array<std::uint64_t, 16> words_;
};

constexpr std::uint64_t place(std::uint64_t word) { return kStack + 8 * word; }

/// The first row of a function.
CfiRow row_of(const std::string& instructions, bool is_signal = false) {
  CfiBuilder builder(0x20000);
  builder.cie({.augmentation = is_signal ? "zRS" : "zR"});
  builder.fde(0x1000, 100, instructions);
  static std::vector<std::unique_ptr<CfiSection>> sections;  // expressions point into them
  sections.push_back(std::make_unique<CfiSection>(CfiFormat::kEhFrame, builder.section()));
  CfiProgram program(sections.back()->fde(0).value());
  BOOST_REQUIRE(program.next());
  return program.row();
}

std::string rule_text(const std::string& instructions, bool is_signal = false) {
  return to_string(architecture::rule_of(row_of(instructions), is_signal));
}

const std::string kPltExpression =
    code({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
          DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus});
const std::string kRealigned = code({DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
                                     DW_CFA_expression, 6, 2, DW_OP_breg6, 0});

}  // namespace

BOOST_AUTO_TEST_CASE(a_rule_keeps_what_it_was_made_of) {
  const Rule rule(RuleKind::kFramePointer, 65535, 2047);
  BOOST_CHECK(rule.kind() == RuleKind::kFramePointer);
  BOOST_TEST(rule.cfa_words() == 65535U);
  BOOST_TEST(rule.frame_pointer_slot() == 2047U);
  BOOST_CHECK(rule != Rule(RuleKind::kFramePointer, 65535, 2046));
  BOOST_TEST(sizeof(Rule) == 4U);
}

BOOST_AUTO_TEST_CASE(common_rows_become_rules) {
  BOOST_TEST(rule_text("") == "cfa=rsp+8");
  BOOST_TEST(rule_text(code({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2})) ==
             "cfa=rsp+16 rbp=cfa-16");
  BOOST_TEST(rule_text(code({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2})) ==
             "cfa=rbp+16 rbp=cfa-16");
  BOOST_TEST(rule_text(code({DW_CFA_undefined, 6})) == "cfa=rsp+8");
  BOOST_TEST(rule_text(kPltExpression) == "plt 11");
  BOOST_TEST(rule_text(kRealigned) == "cfa=*(rbp-8) rbp=*rbp");
  BOOST_TEST(rule_text(code({DW_CFA_undefined, 16})) == "end");
}

BOOST_AUTO_TEST_CASE(other_rows_are_general) {
  for (const std::string& instructions :
       {code({DW_CFA_def_cfa, 10, 0}), code({DW_CFA_def_cfa_offset, 12}),
        code({DW_CFA_def_cfa_offset_sf, 1}), code({DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 1}),
        code({DW_CFA_offset_extended_sf, 6, 0x7f}), code({DW_CFA_register, 6, 3}),
        code({DW_CFA_offset | 16, 2}), code({DW_CFA_offset_extended, 6, 0x80, 0x10}),
        code({DW_CFA_def_cfa_expression, 2, DW_OP_breg6, 0}), code({DW_CFA_offset | 7, 2})})
    BOOST_TEST(rule_text(instructions) == "general");
  BOOST_TEST(rule_text("", true) == "general");  // a signal frame
}

BOOST_AUTO_TEST_CASE(the_cfa_is_counted_from_the_stack_pointer) {
  const FakeStack stack;
  FrameState state{0x5000, place(1), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kStackPointer, 3), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x103, place(4), 77}));
}

BOOST_AUTO_TEST_CASE(the_frame_pointer_is_read_where_it_was_saved) {
  const FakeStack stack;
  FrameState state{0x5000, place(1), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kStackPointer, 3, 2), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x103, place(4), 0x102}));
}

BOOST_AUTO_TEST_CASE(a_slot_below_the_stack_pointer_has_been_popped) {
  const FakeStack stack;
  FrameState state{0x5000, place(3), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kStackPointer, 1, 2), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x103, place(4), 77}));
}

BOOST_AUTO_TEST_CASE(the_cfa_is_counted_from_the_frame_pointer) {
  const FakeStack stack;
  FrameState state{0x5000, place(0), place(5)};
  BOOST_CHECK(execute(Rule(RuleKind::kFramePointer, 2, 2), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x106, place(7), 0x105}));
}

BOOST_AUTO_TEST_CASE(a_plt_entry_pushes_from_some_byte_on) {
  const FakeStack stack;
  FrameState state{0x500a, place(0), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kPlt, 11), state, stack.view()) == Step::kDone);
  BOOST_TEST(state.ip == 0x100U);
  state = {0x500b, place(0), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kPlt, 11), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x101, place(2), 77}));
}

BOOST_AUTO_TEST_CASE(a_realigned_frame_keeps_its_cfa_on_the_stack) {
  FakeStack stack;
  stack[4] = place(10);  // below the frame pointer
  FrameState state{0x5000, place(1), place(5)};
  BOOST_CHECK(execute(Rule(RuleKind::kRealigned, 1), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x109, place(10), 0x105}));
}

BOOST_AUTO_TEST_CASE(an_interpreters_frame_has_its_return_address_above_the_frame_pointer) {
  FakeStack stack;
  stack[4] = place(10);  // the caller's stack pointer, below the frame pointer
  FrameState state{0x5000, place(1), place(5)};
  BOOST_CHECK(execute(Rule(RuleKind::kRealigned, 1, 1), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x106, place(10), 0x105}));
  // Before the caller's stack pointer is pushed, the frame is the first one's.
  state = {0x5000, place(5), place(5)};
  BOOST_CHECK(execute(Rule(RuleKind::kRealigned, 1, 1), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x106, place(7), 0x105}));
}

BOOST_AUTO_TEST_CASE(a_saved_stack_pointer_leads_to_the_frame) {
  FakeStack stack;
  stack[3] = place(7);  // below four words and a return address
  FrameState state{0x5000, place(1), place(5)};
  const Rule rule(RuleKind::kSavedStackPointer, 5, 2);
  BOOST_CHECK(execute(rule, state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x10b, place(12), 0x10a}));
  for (const std::uint64_t wild : {place(0) - 64, place(15), ~std::uint64_t{0} - 7}) {
    stack[3] = wild;
    FrameState same{0x5000, place(1), place(5)};
    BOOST_CHECK(execute(rule, same, stack.view()) != Step::kDone);
    BOOST_CHECK((same == FrameState{0x5000, place(1), place(5)}));
  }
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_outside_of_a_realigned_frame_has_been_restored) {
  FakeStack stack;
  stack[10] = place(9);  // the CFA; rbp is above it, so rbp has been restored and is not read again
  FrameState state{0x5000, place(1), place(11)};
  BOOST_CHECK(execute(Rule(RuleKind::kRealigned, 1), state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x108, place(9), place(11)}));
}

BOOST_AUTO_TEST_CASE(a_view_has_the_words_that_lie_in_it_whole) {
  const FakeStack stack;
  BOOST_CHECK(stack.view().read(place(0)) == 0x100U);
  BOOST_CHECK(stack.view().read(place(15)) == 0x10fU);
  for (const std::uint64_t outside :
       {place(0) - 1, place(0) - 8, place(15) + 1, place(16), std::uint64_t{0}, ~std::uint64_t{7}})
    BOOST_CHECK(!stack.view().read(outside));
}

BOOST_AUTO_TEST_CASE(what_was_not_captured_is_not_read) {
  const FakeStack stack;
  for (const Rule rule : {Rule(RuleKind::kStackPointer, 17), Rule(RuleKind::kStackPointer, 65535),
                          Rule(RuleKind::kFramePointer, 9), Rule(RuleKind::kRealigned, 0)}) {
    FrameState state{0x5000, place(0), place(16)};
    BOOST_CHECK(execute(rule, state, stack.view()) == Step::kNotCaptured);
    BOOST_CHECK((state == FrameState{0x5000, place(0), place(16)}));
  }
  FrameState state{0x5000, place(0), 77};
  BOOST_CHECK(execute(Rule(RuleKind::kStackPointer, 16), state, stack.view()) == Step::kDone);
}

BOOST_AUTO_TEST_CASE(a_caller_lies_above) {
  const FakeStack stack;
  for (const std::uint64_t fp :
       {place(1), place(2) - 1, std::uint64_t{0}, ~std::uint64_t{15}, ~std::uint64_t{0} - 7}) {
    FrameState state{0x5000, place(4), fp};
    BOOST_CHECK(execute(Rule(RuleKind::kFramePointer, 2), state, stack.view()) ==
                Step::kNoProgress);
  }
  FrameState state{0x5000, place(4), 0};
  BOOST_CHECK(execute(Rule(RuleKind::kStackPointer, 0), state, stack.view()) == Step::kNoProgress);
}

BOOST_AUTO_TEST_CASE(an_end_is_an_end_and_no_rule_is_none) {
  const FakeStack stack;
  FrameState state{0x5000, place(4), 0};
  BOOST_CHECK(execute(Rule(RuleKind::kEnd), state, stack.view()) == Step::kEndOfStack);
  BOOST_CHECK(execute(Rule(RuleKind::kNone), state, stack.view()) == Step::kUnusable);
}

BOOST_AUTO_TEST_CASE(rules_and_their_rows_say_the_same) {
  FakeStack stack;
  stack[4] = place(10);
  for (const std::string& instructions :
       {std::string(), code({DW_CFA_def_cfa_offset, 24, DW_CFA_offset | 6, 2}),
        code({DW_CFA_def_cfa_offset, 8, DW_CFA_offset | 6, 2}),
        code({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}), code({DW_CFA_undefined, 16}),
        kPltExpression, kRealigned})
    for (std::uint64_t fp = place(0); fp < place(18); fp += 8) {
      const FrameState start{0x500c, place(2), fp};
      const CfiRow row = row_of(instructions);
      FrameState state = start;
      const Step step = execute(architecture::rule_of(row, false), state, stack.view());
      Registers registers(start);
      BOOST_CHECK(step_row(row, registers, stack.view()) == step);
      BOOST_CHECK(registers.state() == state);  // an unknown frame pointer is 0 in both
    }
}

BOOST_AUTO_TEST_CASE(general_rows_use_any_register) {
  const FakeStack stack;
  Registers registers(FrameState{0x5000, place(2), 77});
  const CfiRow row =
      row_of(code({DW_CFA_def_cfa, 10, 0, DW_CFA_offset | 3, 3, DW_CFA_register, 6, 3}));
  BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kUnknownRegister);
  registers.set(10, place(6));
  registers.set(3, 33);
  BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kDone);
  BOOST_CHECK((registers.state() == FrameState{0x105, place(6), 33}));
  BOOST_CHECK(registers.get(3) == 0x103U);
  BOOST_CHECK(registers.get(10) == place(6));
  BOOST_CHECK(!registers.get(4));
}

BOOST_AUTO_TEST_CASE(a_signal_frame_says_where_the_stack_pointer_was) {
  FakeStack stack;
  stack[8] = place(12);
  Registers registers(FrameState{0x5000, place(2), 77});
  const CfiRow row = row_of(
      code({DW_CFA_expression, 7, 2, DW_OP_breg7, 48, DW_CFA_expression, 16, 2, DW_OP_breg7, 56}),
      true);
  BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kDone);
  BOOST_CHECK((registers.state() == FrameState{0x109, place(12), 77}));
  registers = Registers(FrameState{0x5000, place(2), 77});
  stack[8] = place(2);  // not above the stack pointer
  BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kNoProgress);
  for (const std::uint64_t elsewhere : {place(20), place(0) - 8}) {
    registers = Registers(FrameState{0x5000, place(2), 77});
    stack[8] = elsewhere;
    BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kOtherStack);
    BOOST_CHECK((registers.state() == FrameState{0x109, elsewhere, 77}));
  }
}

BOOST_AUTO_TEST_CASE(a_realigned_function_has_popped_the_frame_pointer_before_its_cfi_knows) {
  const FakeStack stack;
  Registers registers(FrameState{0x5000, place(2), place(9)});  // the caller's frame pointer
  registers.set(10, place(4));
  const CfiRow row = row_of(code({DW_CFA_def_cfa, 10, 0, DW_CFA_expression, 6, 2, DW_OP_breg6, 0}));
  BOOST_CHECK(step_row(row, registers, stack.view()) == Step::kDone);
  BOOST_CHECK((registers.state() == FrameState{0x103, place(4), place(9)}));
}

BOOST_AUTO_TEST_CASE(guesses_read_the_frame_pointers_chain_or_the_top_of_the_stack) {
  FakeStack stack;
  FrameState state{0x5000, place(2), place(5)};
  BOOST_CHECK(architecture::step_by_frame_pointer(state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x106, place(7), 0x105}));
  state = {0x5000, place(2), place(5) + 1};
  BOOST_CHECK(architecture::step_by_frame_pointer(state, stack.view()) == Step::kUnusable);
  BOOST_CHECK(architecture::step_as_leaf(state, stack.view()) == Step::kDone);
  BOOST_CHECK((state == FrameState{0x102, place(3), place(5) + 1}));
}

BOOST_AUTO_TEST_SUITE_END()
