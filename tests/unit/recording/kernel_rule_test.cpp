// SPDX-License-Identifier: MIT
#include "recording/bpf/kernel_rule.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/cfi_builder.h"
#include "support/rule_text.h"
#include "unwind/cfi/unwind_table.h"

BOOST_AUTO_TEST_SUITE(kernel_rule)

namespace {

using pe::testing::CfiBuilder;
using pe::testing::code;
using pe::unwind::Rule;
using pe::unwind::RuleKind;
using namespace pe::unwind;

constexpr std::uint64_t kStart = 0x1000;

/// The kernel's entry, in words, for a function's row after all of its instructions.
std::string entry_after(const std::string& instructions, bool is_signal_frame = false) {
  CfiBuilder builder(0x20000);
  builder.cie({.augmentation = is_signal_frame ? "zRS" : "zR"});
  builder.fde(kStart, 0x20, instructions);
  const pe::unwind::UnwindTable table(
      pe::unwind::CfiSection(pe::unwind::CfiFormat::kEhFrame, builder.section()));
  const auto full = table.full_row(kStart);
  BOOST_REQUIRE(full);
  return to_string(entry_of(full->row, full->is_signal_frame));
}

std::string cfa_expression(const std::string& expression) {
  return code({DW_CFA_def_cfa_expression, static_cast<int>(expression.size())}) + expression;
}

std::string saved(int register_number, const std::string& expression) {
  return code({DW_CFA_expression, register_number, static_cast<int>(expression.size())}) +
         expression;
}

/// DW_OP_breg with an offset of 128..8191, which is an sleb128 of two bytes.
std::string breg(int number, int offset) {
  return code({DW_OP_breg0 + number, (offset & 0x7f) | 0x80, offset >> 7});
}

const std::string kFramePointerAtFramePointer = saved(6, code({DW_OP_breg6, 0}));

/// A signal frame like that of glibc's __restore_rt.
std::string signal_frame() {
  return cfa_expression(breg(7, 160) + code({DW_OP_deref})) + saved(16, breg(7, 168)) +
         saved(6, code({DW_OP_breg7, 120 | 0x80, 0})) + saved(7, breg(7, 160));
}

}  // namespace

BOOST_AUTO_TEST_CASE(another_stack_that_the_frame_pointer_leads_to_has_an_entry) {
  const std::string by_frame_pointer = code({DW_CFA_def_cfa, 6, 16}) +
                                       saved(16, code({DW_OP_breg6, 8})) +
                                       kFramePointerAtFramePointer;
  const std::string stack_pointer = code({DW_CFA_val_expression, 7, 2, DW_OP_breg6, 16});
  BOOST_TEST(entry_after(by_frame_pointer + stack_pointer) == "switch");
  BOOST_TEST(entry_after(by_frame_pointer) == "unsupported");
}

BOOST_AUTO_TEST_CASE(rules_of_user_space_keep_their_meaning) {
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kStackPointer, 3, 2))) == "cfa=sp+24 fp=cfa-16");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kStackPointer, 1))) == "cfa=sp+8");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kFramePointer, 2, 2))) == "cfa=fp+16 fp=cfa-16");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kPlt, 11))) == "plt 11");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kRealigned, 5))) == "cfa=*(fp-40)+0 fp=*fp");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kEnd))) == "end");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kNone))) == "none");
  BOOST_TEST(to_string(entry_of(Rule(RuleKind::kGeneral))) == "unsupported");
}

BOOST_AUTO_TEST_CASE(the_largest_rules_fit) {
  const Rule largest(RuleKind::kFramePointer, Rule::kMaxCfaWords, Rule::kMaxSlot);
  BOOST_TEST(to_string(entry_of(largest)) == "cfa=fp+524280 fp=cfa-16376");
}

BOOST_AUTO_TEST_CASE(rows_that_a_rule_describes_have_its_entry) {
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2})) ==
             "cfa=sp+16 fp=cfa-16");
  BOOST_TEST(entry_after(code({DW_CFA_undefined, 16})) == "end");
  BOOST_TEST(entry_after(cfa_expression(
                 code({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
                       DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}))) == "plt 11");
}

BOOST_AUTO_TEST_CASE(the_cfa_may_depend_on_any_general_register) {
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 3, 16})) == "cfa=r3+16");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 10, 0})) == "cfa=r10+0");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 0, 8, DW_CFA_offset | 6, 3})) ==
             "cfa=r0+8 fp=cfa-24");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 10, 0}) + kFramePointerAtFramePointer) ==
             "cfa=r10+0 fp=*fp");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 16, 8})) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 17, 8})) == "unsupported");
}

BOOST_AUTO_TEST_CASE(the_cfa_may_be_saved_on_the_stack) {
  const std::string deref = code({DW_OP_deref});
  BOOST_TEST(entry_after(cfa_expression(code({DW_OP_breg6, 0x58}) + deref)) == "cfa=*(fp-40)+0");
  BOOST_TEST(entry_after(cfa_expression(breg(7, 200) + deref)) == "cfa=*(sp+200)+0");
  // OpenSSL's assembly writes it in this way.
  const std::string added = deref + code({DW_OP_plus_uconst, 8});
  BOOST_TEST(entry_after(cfa_expression(breg(7, 200) + added)) == "cfa=*(sp+200)+8");
  BOOST_TEST(entry_after(cfa_expression(code({DW_OP_breg6, 0x58}) + added)) == "cfa=*(fp-40)+8");
  BOOST_TEST(entry_after(cfa_expression(code({DW_OP_breg6, 0x78}) + deref) +
                         kFramePointerAtFramePointer) == "cfa=*(fp-8)+0 fp=*fp");
}

BOOST_AUTO_TEST_CASE(other_expressions_are_for_user_space) {
  const std::string deref = code({DW_OP_deref});
  for (const std::string& expression :
       {breg(7, 200), breg(3, 200) + deref, breg(7, 200) + deref + code({DW_OP_plus_uconst, 7}),
        breg(7, 200) + deref + code({DW_OP_plus_uconst}), breg(7, 200) + deref + deref,
        breg(7, 200) + deref + code({DW_OP_plus_uconst, 0x80, 0x10}), code({DW_OP_breg7}),
        code({DW_OP_lit3})})
    BOOST_TEST(entry_after(cfa_expression(expression)) == "unsupported");
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_that_is_elsewhere_is_for_user_space) {
  for (const std::string& place :
       {code({DW_CFA_register, 6, 9}), code({DW_CFA_val_offset, 6, 0}),
        saved(6, code({DW_OP_breg6, 8})), saved(6, code({DW_OP_breg7, 0})),
        saved(6, code({DW_OP_breg6, 0, DW_OP_deref}))})
    BOOST_TEST(entry_after(place) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_undefined, 6})) == "cfa=sp+8");
}

BOOST_AUTO_TEST_CASE(a_return_address_that_is_elsewhere_is_for_user_space) {
  BOOST_TEST(entry_after(code({DW_CFA_offset | 16, 2})) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_register, 16, 5})) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_offset | 7, 2})) == "unsupported");
}

BOOST_AUTO_TEST_CASE(a_signal_frame_is_the_kernels_or_unsupported) {
  BOOST_TEST(entry_after(signal_frame(), true) == "signal");
  BOOST_TEST(entry_after(signal_frame(), false) == "unsupported");
  BOOST_TEST(entry_after(signal_frame() + saved(16, breg(7, 176)), true) == "unsupported");
  BOOST_TEST(entry_after(signal_frame() + saved(6, breg(7, 176)), true) == "unsupported");
  BOOST_TEST(entry_after(signal_frame() + saved(7, breg(7, 176)), true) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa_offset, 16}), true) == "unsupported");
}

BOOST_AUTO_TEST_CASE(offsets_that_do_not_fit_are_for_user_space) {
  // 2^31 is too large; then the largest offset that fits.
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 7, 0x80, 0x80, 0x80, 0x80, 0x08})) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_def_cfa, 7, 0xff, 0xff, 0xff, 0xff, 0x07})) ==
             "cfa=sp+2147483647");
  // 65535 words below the CFA do not fit: this number has another meaning.
  BOOST_TEST(entry_after(code({DW_CFA_offset | 6, 0xff, 0xff, 0x03})) == "unsupported");
  BOOST_TEST(entry_after(code({DW_CFA_offset | 6, 0xfe, 0xff, 0x03})) == "cfa=sp+8 fp=cfa-524272");
}

BOOST_AUTO_TEST_SUITE_END()
