// SPDX-License-Identifier: MIT
#include "folded/ordered_stacks.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace pe::folded;

BOOST_AUTO_TEST_SUITE(ordered_stacks)

namespace {

std::string ordered(const std::vector<const char*>& lines) {
  OrderedStacks stacks;
  for (const char* line : lines)
    stacks.add(*parse_folded_line(line));
  std::string text;
  OrderedStacks::Reader reader(stacks);
  while (const auto line = reader.next())
    append_folded_line(text, *line);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(stacks_come_in_order_of_their_bytes_and_equal_ones_as_they_came) {
  BOOST_TEST(ordered({"b 1", "a;b 2", "a 9", "a;b 1", "a (x) 3"}) ==
             "a 9\na (x) 3\na;b 2\na;b 1\nb 1\n");
}

BOOST_AUTO_TEST_CASE(input_in_order_stays_as_it_is) {
  BOOST_TEST(ordered({"a 1", "a;b 1", "a;bc;d 1", "b 1"}) == "a 1\na;b 1\na;bc;d 1\nb 1\n");
  BOOST_TEST(ordered({}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
