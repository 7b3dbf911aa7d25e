// SPDX-License-Identifier: MIT
#include "recording/bpf/mapped_memory.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(verifier_log)

using pe::unwind::told_by_verifier;

BOOST_AUTO_TEST_CASE(lines_become_one) {
  BOOST_TEST(told_by_verifier("0: (bf) r6 = r1\nR1 invalid mem access\n") ==
             "; the verifier: 0: (bf) r6 = r1 | R1 invalid mem access");
  BOOST_TEST(told_by_verifier("alone") == "; the verifier: alone");
}

BOOST_AUTO_TEST_CASE(who_said_nothing_is_not_named) {
  BOOST_TEST(told_by_verifier("") == "");
  BOOST_TEST(told_by_verifier("\n\n") == "");
  BOOST_TEST(told_by_verifier(std::string(100, '\0')) == "");
}

BOOST_AUTO_TEST_CASE(what_lies_behind_the_end_is_not_told) {
  BOOST_TEST(told_by_verifier(std::string("one\n\0two\n", 9)) == "; the verifier: one");
}

BOOST_AUTO_TEST_CASE(of_a_long_log_the_end_is_told) {
  std::string log, last;
  for (int line = 0; line < 100; ++line) {
    log += std::to_string(line) + "\n";
    if (line >= 70)
      last += (line > 70 ? " | " : "") + std::to_string(line);
  }
  BOOST_TEST(told_by_verifier(log) == "; the verifier: " + last);
  // One line more than is reported; then exactly as many.
  BOOST_TEST(told_by_verifier("x\n" + log.substr(log.find("70"))) == "; the verifier: " + last);
  BOOST_TEST(told_by_verifier(log.substr(log.find("70"))) == "; the verifier: " + last);
}

BOOST_AUTO_TEST_SUITE_END()
