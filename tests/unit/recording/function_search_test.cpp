// SPDX-License-Identifier: MIT
#include "recording/probes/function_search.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "names/demangle.h"
#include "recording/probes/source_places.h"
#include "support/binary_symbols.h"
#include "support/test_binary.h"

BOOST_AUTO_TEST_SUITE(function_search)

namespace {

using pe::names::FunctionSearch;
using pe::names::SourcePlaces;
using pe::testing::image_of;
using pe::testing::symbol_of;
using pe::testing::test_binary;

/// The functions of a library, found by one name.
struct Library {
  explicit Library(const std::string& name)
      : path(test_binary(name)), image(image_of(path)), functions(image, path, finder) {}
  std::string path;
  pe::objects::Image image;
  pe::objects::DebugFinder finder;
  FunctionSearch functions;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_is_found_by_each_form_of_its_name) {
  const Library library("libfunctions.so");
  const auto svma = symbol_of(library.image, "_ZNK6shapes6Circle4areaEv").svma;
  for (const char* name :
       {"_ZNK6shapes6Circle4areaEv", "shapes::Circle::area", "shapes::Circle::area() const"}) {
    const auto found = library.functions.named(name);
    BOOST_TEST_REQUIRE(found.size() == 1U, name);
    BOOST_TEST(found[0].svma == svma);
    BOOST_TEST(found[0].name == "shapes::Circle::area");
  }
  BOOST_TEST(library.functions.named("shapes::twice<int>").size() == 1U);
  BOOST_TEST(library.functions.named("int shapes::twice<int>(int)").size() == 1U);
  BOOST_TEST(library.functions.named("shapes::twice<int>(int)").size() == 1U);
  BOOST_TEST(library.functions.named("area").empty());
  BOOST_TEST(library.functions.named("shapes::Circle::area(int)").empty());
}

BOOST_AUTO_TEST_CASE(a_pattern_finds_all_that_match) {
  const Library library("libfunctions.so");
  const auto found = library.functions.matching("shapes::*");
  BOOST_TEST(found.size() > 1U);
  BOOST_TEST(std::all_of(found.begin(), found.end(), [](const auto& function) {
    return function.name.starts_with("shapes::");
  }));
  BOOST_TEST(library.functions.matching("nothing*").empty());
  BOOST_TEST(library.functions.containing("Circle", 1).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stripped_file_has_only_exported_functions) {
  BOOST_TEST(Library("functions_stripped.so").functions.is_stripped());
  BOOST_TEST(!Library("libfunctions.so").functions.is_stripped());
}

BOOST_AUTO_TEST_CASE(a_line_has_code) {
  Library program("inlined");
  const SourcePlaces places(program.image, program.path, program.finder);
  const auto plain = symbol_of(program.image, "plain");
  const auto code = places.code_of("inlined.cpp", 31);
  BOOST_TEST(code.line == 31U);
  BOOST_TEST_REQUIRE(!code.svmas.empty());
  BOOST_TEST(code.svmas.front() >= plain.svma);
  BOOST_TEST(code.svmas.front() < plain.svma + plain.bytes);
  BOOST_TEST(places.code_of("inlined.cpp", 100'000).line == 0U);
  BOOST_TEST(places.code_of("other.cpp", 31).line == 0U);
}

BOOST_AUTO_TEST_CASE(an_inlined_function_is_known) {
  Library program("inlined");
  const SourcePlaces places(program.image, program.path, program.finder);
  const auto middle = places.find_inlined("box::Box::middle");
  BOOST_TEST_REQUIRE(middle.has_value());
  BOOST_TEST(middle->line == 18U);
  BOOST_TEST(places.find_inlined("middle").has_value());
  BOOST_TEST(!places.find_inlined("plain").has_value());
  BOOST_TEST(!places.find_inlined("other::middle").has_value());
}

BOOST_AUTO_TEST_CASE(full_names_have_parameters) {
  using pe::names::demangle_with_parameters;
  BOOST_TEST(demangle_with_parameters("_ZN6shapes5twiceIiEET_S1_") ==
             "int shapes::twice<int>(int)");
  BOOST_TEST(demangle_with_parameters("plain") == "");
}

BOOST_AUTO_TEST_SUITE_END()
