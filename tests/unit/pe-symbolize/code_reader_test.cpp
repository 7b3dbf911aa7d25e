// SPDX-License-Identifier: MIT
#include "pe-symbolize/code_reader.h"

#include <boost/test/unit_test.hpp>

#include "pe-symbolize/tail_calls.h"
#include "support/binary_symbols.h"
#include "support/test_binary.h"

using pe::symbolize::CodeReader;

BOOST_AUTO_TEST_SUITE(code_reader)

namespace {

/// A reader of a test binary in memory, and what it needs.
struct Read {
  explicit Read(const std::string& name)
      : image(pe::testing::image_of(pe::testing::test_binary(name))),
        ranges(image),
        reader(pe::testing::image_of(pe::testing::test_binary(name)), {},
               {.open = {}, .ranges = [this] { return &ranges; }}) {}

  std::uint64_t at(std::string_view function) const {
    return pe::testing::symbol_of(image, function).svma;
  }
  pe::symbolize::Jumps jumps_of(std::string_view function) {
    return reader.jumps_of(*reader.function_at(at(function)));
  }

  pe::objects::Image image;
  pe::unwind::FunctionRanges ranges;
  CodeReader reader;
};

}  // namespace

BOOST_AUTO_TEST_CASE(finds_what_a_call_before_an_address_calls) {
  Read read("tail_calls.so");
  const auto call = read.reader.call_before(read.at("to_direct") + 5);
  BOOST_REQUIRE(call);
  BOOST_TEST(call->svma == read.at("direct"));
  BOOST_TEST(!call->is_by_slot);
  BOOST_TEST(read.reader.target_of(*call)->svma == read.at("direct"));
  const auto by_slot = read.reader.call_before(read.at("to_ext_slot") + 6);
  BOOST_REQUIRE(by_slot);
  BOOST_TEST(by_slot->is_by_slot);
  BOOST_TEST(read.reader.target_of(*by_slot)->symbol == "ext");
  BOOST_TEST(!read.reader.call_before(read.at("to_direct") + 6));
  BOOST_TEST(!read.reader.call_before(0));
  BOOST_TEST(!read.reader.call_before(~std::uint64_t{0}));
}

BOOST_AUTO_TEST_CASE(a_call_into_the_middle_has_no_target) {
  Read read("tail_calls.so");
  const auto call = read.reader.call_before(read.at("to_middle") + 5);
  BOOST_REQUIRE(call);
  BOOST_TEST(!read.reader.target_of(*call));
}

BOOST_AUTO_TEST_CASE(finds_jumps_out_of_a_function) {
  Read read("tail_calls.so");
  const auto jumps = read.jumps_of("conditional");
  BOOST_TEST(jumps.is_whole);
  BOOST_TEST_REQUIRE(jumps.named.size() == 2U);
  BOOST_TEST(jumps.named[0].to.svma == read.at("leaf"));
  BOOST_TEST(jumps.named[0].is_conditional);
  BOOST_TEST(jumps.named[1].to.svma == read.at("leaf2"));
  BOOST_TEST(!jumps.named[1].is_conditional);
  BOOST_TEST(!jumps.has_computed);
  BOOST_TEST(read.jumps_of("computed").has_computed);
  BOOST_TEST(!read.jumps_of("switch").has_computed);
  BOOST_TEST(read.jumps_of("jump_slot").named.at(0).to.symbol == "ext");
}

BOOST_AUTO_TEST_CASE(a_signal_return_and_stubs_are_no_functions) {
  Read read("tail_calls.so");
  BOOST_TEST(!read.reader.function_at(read.at("signal_return")));
  BOOST_TEST(!read.reader.function_at(read.image.section(".plt")->svma));
  BOOST_TEST(!read.reader.function_at(read.at("bare")));
  BOOST_TEST(read.reader.function_at(read.at("leaf")).has_value());
}

BOOST_AUTO_TEST_CASE(finds_what_a_file_offers) {
  Read read("tail_callees.so");
  BOOST_TEST_REQUIRE(read.reader.exports_of("ext").value().size() == 1U);
  BOOST_TEST(read.reader.exports_of("ext").value()[0].svma == read.at("ext"));
  BOOST_TEST(read.reader.exports_of("chosen").value().at(0).is_ifunc);
  BOOST_TEST(read.reader.exports_of("ext_inner").value().empty());
  BOOST_TEST(read.reader.exports_of("").value().empty());
}

BOOST_AUTO_TEST_CASE(names_without_the_suffixes_of_compilers) {
  using pe::symbolize::without_part;
  BOOST_TEST(without_part("f") == "f");
  BOOST_TEST(without_part("f.cold") == "f");
  BOOST_TEST(without_part("f.part.0.isra.3.cold") == "f");
  BOOST_TEST(without_part("_ZN4core3ptr85drop_in_place$LT$..$GT$17h0123E.llvm.12") ==
             "_ZN4core3ptr85drop_in_place$LT$..$GT$17h0123E");
  BOOST_TEST(without_part(".cold") == ".cold");
  BOOST_TEST(without_part("") == "");
}

BOOST_AUTO_TEST_SUITE_END()
