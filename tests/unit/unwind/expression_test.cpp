// SPDX-License-Identifier: MIT
#include "unwind/cfi/expression.h"

#include <dwarf.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "support/cfi_builder.h"

BOOST_AUTO_TEST_SUITE(expression)

namespace {

using pe::testing::code;
using namespace pe::unwind;

constexpr std::uint64_t kStack = 0x7000;
constexpr std::array<std::uint64_t, 4> kWords = {10, 0x1122334455667788, 30, 40};

std::variant<std::uint64_t, Step> run(const std::string& expression,
                                      std::optional<std::uint64_t> cfa = std::nullopt) {
  architecture::Registers registers;
  registers.set(6, 600);
  registers.set(7, kStack);
  const StackView stack(kStack, std::as_bytes(std::span(kWords)));
  return evaluate(std::as_bytes(std::span(expression)), {registers, stack, cfa});
}

/// The value of an expression; the test fails if it has none.
std::uint64_t value(const std::string& expression) {
  const auto result = run(expression);
  BOOST_REQUIRE(std::holds_alternative<std::uint64_t>(result));
  return std::get<std::uint64_t>(result);
}

bool fails(const std::string& expression, Step why) {
  const auto result = run(expression);
  return std::holds_alternative<Step>(result) && std::get<Step>(result) == why;
}

}  // namespace

BOOST_AUTO_TEST_CASE(constants_of_every_width) {
  BOOST_TEST(value(code({DW_OP_lit31})) == 31U);
  BOOST_TEST(value(code({DW_OP_const1u, 0xff})) == 255U);
  BOOST_TEST(value(code({DW_OP_const1s, 0xff})) == ~std::uint64_t{0});
  BOOST_TEST(value(code({DW_OP_const2s, 0xfe, 0xff})) == std::uint64_t(-2));
  BOOST_TEST(value(code({DW_OP_const4u, 1, 0, 0, 0x80})) == 0x80000001U);
  BOOST_TEST(value(code({DW_OP_const8u, 1, 0, 0, 0, 0, 0, 0, 0x80})) == 0x8000000000000001U);
  BOOST_TEST(value(code({DW_OP_consts, 0x7e})) == std::uint64_t(-2));
}

BOOST_AUTO_TEST_CASE(registers_and_memory) {
  BOOST_TEST(value(code({DW_OP_breg6, 0x78})) == 592U);
  BOOST_TEST(value(code({DW_OP_bregx, 7, 8, DW_OP_deref})) == kWords[1]);
  BOOST_TEST(value(code({DW_OP_breg7, 8, DW_OP_deref_size, 2})) == 0x7788U);
  BOOST_CHECK(fails(code({DW_OP_breg3, 0}), Step::kUnknownRegister));
  BOOST_CHECK(fails(code({DW_OP_bregx, 99, 0}), Step::kUnknownRegister));
  BOOST_CHECK(fails(code({DW_OP_breg7, 25, DW_OP_deref}), Step::kNotCaptured));
  BOOST_CHECK(fails(code({DW_OP_lit0, DW_OP_deref}), Step::kNotCaptured));
  BOOST_CHECK(fails(code({DW_OP_breg7, 0, DW_OP_deref_size, 9}), Step::kUnusable));
}

BOOST_AUTO_TEST_CASE(arithmetic_wraps_and_is_signed_where_the_standard_says) {
  const auto with = [](int op) { return value(code({DW_OP_const1s, 0xf6, DW_OP_lit3, op})); };
  BOOST_TEST(with(DW_OP_plus) == std::uint64_t(-7));
  BOOST_TEST(with(DW_OP_minus) == std::uint64_t(-13));
  BOOST_TEST(with(DW_OP_mul) == std::uint64_t(-30));
  BOOST_TEST(with(DW_OP_div) == std::uint64_t(-3));
  BOOST_TEST(with(DW_OP_shl) == std::uint64_t(-80));
  BOOST_TEST(with(DW_OP_shra) == std::uint64_t(-2));
  BOOST_TEST(with(DW_OP_shr) == std::uint64_t(-10) >> 3);
  BOOST_TEST(with(DW_OP_and) == 2U);
  BOOST_TEST(with(DW_OP_lt) == 1U);
  BOOST_TEST(with(DW_OP_ge) == 0U);
  BOOST_TEST(with(DW_OP_ne) == 1U);
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_const1u, 64, DW_OP_shl})) == 0U);
  BOOST_CHECK(fails(code({DW_OP_lit1, DW_OP_lit0, DW_OP_div}), Step::kUnusable));
  BOOST_CHECK(fails(code({DW_OP_lit1, DW_OP_lit0, DW_OP_mod}), Step::kUnusable));
  // The only quotient that overflows.
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_const1u, 63, DW_OP_shl, DW_OP_const1s, 0xff,
                         DW_OP_div})) == std::uint64_t{1} << 63);
}

BOOST_AUTO_TEST_CASE(the_stack_is_shuffled) {
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_lit2, DW_OP_swap})) == 1U);
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot})) == 2U);
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop})) == 1U);
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_lit2, DW_OP_over})) == 1U);
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_pick, 2})) == 1U);
}

BOOST_AUTO_TEST_CASE(jumps_stay_inside) {
  BOOST_TEST(value(code({DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit2, DW_OP_nop})) == 1U);
  BOOST_TEST(value(code({DW_OP_lit7, DW_OP_lit0, DW_OP_bra, 9, 9, DW_OP_lit3})) == 3U);
  BOOST_CHECK(fails(code({DW_OP_lit1, DW_OP_skip, 9, 0}), Step::kUnusable));
  BOOST_CHECK(fails(code({DW_OP_lit1, DW_OP_skip, 0, 0x80}), Step::kUnusable));
}

BOOST_AUTO_TEST_CASE(nothing_goes_on_for_ever) {
  BOOST_CHECK(fails(code({DW_OP_skip, 0xfd, 0xff}), Step::kUnusable));
  BOOST_CHECK(
      fails(std::string(kMaxExpressionDepth + 1, static_cast<char>(DW_OP_lit1)), Step::kUnusable));
  BOOST_CHECK(fails("", Step::kUnusable));
  BOOST_CHECK(fails(code({DW_OP_plus}), Step::kUnusable));
  BOOST_CHECK(fails(code({DW_OP_const4u, 1}), Step::kUnusable));
  BOOST_CHECK(fails(code({0xff}), Step::kUnusable));
}

BOOST_AUTO_TEST_CASE(the_cfa_is_there_if_it_is_known) {
  BOOST_CHECK(run(code({DW_OP_lit2, DW_OP_plus}), 40) == (std::variant<std::uint64_t, Step>(42U)));
  BOOST_CHECK(run(code({DW_OP_call_frame_cfa}), 40) == (std::variant<std::uint64_t, Step>(40U)));
  BOOST_CHECK(fails(code({DW_OP_call_frame_cfa}), Step::kUnusable));
}

BOOST_AUTO_TEST_SUITE_END()
