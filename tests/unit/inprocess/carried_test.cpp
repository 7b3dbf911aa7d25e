// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/carried.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using pe::inprocess::Carried;

namespace {

using Texts = std::vector<std::string>;

Carried carrier() {
  Carried carried;
  carried.set_library("/x/own.so");
  carried.set_variable("OWN=socket=1");
  return carried;
}

std::vector<const char*> as_pointers(const Texts& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts)
    pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

/// What a program finds that is begun with that environment.
Texts completed(const Carried& carried, const Texts& environment) {
  const auto pointers = as_pointers(environment);
  const std::size_t bytes = carried.room_for(pointers.data());
  if (bytes == 0)
    return environment;
  std::vector<char*> room((bytes + sizeof(char*) - 1) / sizeof(char*));
  Texts found;
  for (char* const* at = carried.complete(pointers.data(), room.data()); *at != nullptr; ++at)
    found.emplace_back(*at);
  return found;
}

/// What one finds that does not start with the library.
Texts kept_out(const Carried& carried, const Texts& environment) {
  const auto pointers = as_pointers(environment);
  const std::size_t bytes = carried.room_without(pointers.data());
  if (bytes == 0)
    return environment;
  std::vector<char*> room((bytes + sizeof(char*) - 1) / sizeof(char*));
  Texts found;
  for (char* const* at = carried.without_library(pointers.data(), room.data()); *at != nullptr;
       ++at)
    found.emplace_back(*at);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(carried)

BOOST_AUTO_TEST_CASE(adds_both_to_an_environment_without) {
  BOOST_TEST(completed(carrier(), {"A=1"}) ==
             (Texts{"A=1", "LD_PRELOAD=/x/own.so", "OWN=socket=1"}));
  BOOST_TEST(completed(carrier(), {}) == (Texts{"LD_PRELOAD=/x/own.so", "OWN=socket=1"}));
}

BOOST_AUTO_TEST_CASE(no_environment_is_an_empty_one) {
  const Carried carried = carrier();
  std::vector<char*> room(carried.room_for(nullptr));
  BOOST_TEST(carried.complete(nullptr, room.data())[0] == std::string("LD_PRELOAD=/x/own.so"));
}

BOOST_AUTO_TEST_CASE(leaves_one_that_has_both) {
  const Texts both{"OWN=other", "LD_PRELOAD=/a.so:/x/own.so /b.so"};
  BOOST_TEST(carrier().room_for(as_pointers(both).data()) == 0U);
}

BOOST_AUTO_TEST_CASE(stands_before_other_libraries) {
  BOOST_TEST(completed(carrier(), {"LD_PRELOAD=/x/own.so.1", "OWN=2", "Z=3"}) ==
             (Texts{"LD_PRELOAD=/x/own.so:/x/own.so.1", "OWN=2", "Z=3"}));
  BOOST_TEST(completed(carrier(), {"LD_PRELOAD=", "OWN=2"}) ==
             (Texts{"LD_PRELOAD=/x/own.so", "OWN=2"}));
}

BOOST_AUTO_TEST_CASE(of_two_the_last_counts_as_the_dynamic_linker_has_it) {
  BOOST_TEST(completed(carrier(), {"LD_PRELOAD=/x/own.so", "LD_PRELOAD=/a.so", "OWN=2"}) ==
             (Texts{"LD_PRELOAD=/x/own.so", "LD_PRELOAD=/x/own.so:/a.so", "OWN=2"}));
}

BOOST_AUTO_TEST_CASE(a_name_that_begins_the_same_is_another) {
  BOOST_TEST(completed(carrier(), {"OWNER=1", "LD_PRELOAD=/x/own.so"}) ==
             (Texts{"OWNER=1", "LD_PRELOAD=/x/own.so", "OWN=socket=1"}));
}

BOOST_AUTO_TEST_CASE(leaves_one_that_is_too_large) {
  const Texts many(Carried::kMostVariables + 1, "A=1");
  BOOST_TEST(carrier().room_for(as_pointers(many).data()) == 0U);
  const Texts wide{"LD_PRELOAD=" + std::string(Carried::kMostPreloadBytes, 'a')};
  BOOST_TEST(carrier().room_for(as_pointers(wide).data()) == 0U);
}

BOOST_AUTO_TEST_CASE(carries_nothing_that_was_not_asked_for) {
  Carried carried;
  carried.set_library("/x/own.so");
  BOOST_TEST(carried.room_for(nullptr) == 0U);
  carried.set_variable("OWN=" + std::string(10000, 'x'));
  BOOST_TEST(carried.room_for(nullptr) == 0U);
}

BOOST_AUTO_TEST_CASE(keeps_the_library_out_and_leaves_others) {
  BOOST_TEST(kept_out(carrier(), {"A=1", "LD_PRELOAD=/x/own.so", "OWN=2"}) ==
             (Texts{"A=1", "LD_PRELOAD=", "OWN=2"}));
  BOOST_TEST(kept_out(carrier(), {"LD_PRELOAD=/a.so:/x/own.so::/b.so /x/own.so"}) ==
             (Texts{"LD_PRELOAD=/a.so:/b.so"}));
  BOOST_TEST(kept_out(carrier(), {"LD_PRELOAD=/a.so", "B=1"}) ==
             (Texts{"LD_PRELOAD=/a.so", "B=1"}));
  BOOST_TEST(carrier().room_without(nullptr) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
