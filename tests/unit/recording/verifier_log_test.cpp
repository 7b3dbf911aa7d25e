// SPDX-License-Identifier: MIT
#include "recording/bpf/mapped_memory.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(verifier_log)

using pe::unwind::verifier_message;

BOOST_AUTO_TEST_CASE(lines_become_one) {
  BOOST_TEST(verifier_message("0: (bf) r6 = r1\nR1 invalid mem access\n") ==
             "; the verifier: 0: (bf) r6 = r1 | R1 invalid mem access");
  BOOST_TEST(verifier_message("alone") == "; the verifier: alone");
}

BOOST_AUTO_TEST_CASE(who_said_nothing_is_not_named) {
  BOOST_TEST(verifier_message("") == "");
  BOOST_TEST(verifier_message("\n\n") == "");
  BOOST_TEST(verifier_message(std::string(100, '\0')) == "");
}

BOOST_AUTO_TEST_CASE(what_lies_behind_the_end_is_not_told) {
  BOOST_TEST(verifier_message(std::string("one\n\0two\n", 9)) == "; the verifier: one");
}

BOOST_AUTO_TEST_CASE(of_a_long_log_the_end_is_told) {
  std::string log, last;
  for (int line = 0; line < 100; ++line) {
    log += std::to_string(line) + "\n";
    if (line >= 70)
      last += (line > 70 ? " | " : "") + std::to_string(line);
  }
  BOOST_TEST(verifier_message(log) == "; the verifier: " + last);
  // One line more than is reported; then exactly as many.
  BOOST_TEST(verifier_message("x\n" + log.substr(log.find("70"))) == "; the verifier: " + last);
  BOOST_TEST(verifier_message(log.substr(log.find("70"))) == "; the verifier: " + last);
}

BOOST_AUTO_TEST_SUITE_END()
