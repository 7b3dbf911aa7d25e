// SPDX-License-Identifier: MIT
#include "unwind/cfi/expression.h"

#include <dwarf.h>
#include <boost/test/unit_test.hpp>

#include <span>
#include <string>

#include "support/cfi_builder.h"

BOOST_AUTO_TEST_SUITE(simple_expression)

namespace {

using pe::testing::code;
using pe::unwind::SimpleExpression;

std::optional<SimpleExpression> read(const std::string& expression) {
  return pe::unwind::simple_expression(std::as_bytes(std::span(expression)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_register_and_an_offset) {
  BOOST_CHECK((read(code({DW_OP_breg6, 0})) == SimpleExpression{.register_number = 6}));
  BOOST_CHECK(
      (read(code({DW_OP_breg31, 0x78})) == SimpleExpression{.register_number = 31, .offset = -8}));
}

BOOST_AUTO_TEST_CASE(what_is_saved_there) {
  const SimpleExpression load{.register_number = 7, .offset = 16, .is_load = true};
  BOOST_CHECK(read(code({DW_OP_breg7, 16, DW_OP_deref})) == load);
  SimpleExpression added = load;
  added.addend = 200;
  BOOST_CHECK(read(code({DW_OP_breg7, 16, DW_OP_deref, DW_OP_plus_uconst, 0xc8, 1})) == added);
}

BOOST_AUTO_TEST_CASE(anything_else_is_none) {
  for (const std::string& expression :
       {std::string(), code({DW_OP_lit0}), code({DW_OP_regx, 6}), code({DW_OP_breg6}),
        code({DW_OP_breg6, 0x80}), code({DW_OP_breg6, 0, DW_OP_plus_uconst, 8}),
        code({DW_OP_breg6, 0, DW_OP_deref, DW_OP_plus_uconst}),
        code({DW_OP_breg6, 0, DW_OP_deref, DW_OP_deref}),
        code({DW_OP_breg6, 0, DW_OP_deref, DW_OP_plus_uconst, 8, DW_OP_nop})})
    BOOST_CHECK(!read(expression));
}

BOOST_AUTO_TEST_SUITE_END()
