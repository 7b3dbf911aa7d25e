// SPDX-License-Identifier: MIT
#include "stacktop/hierarchy.h"

#include <boost/test/unit_test.hpp>

#include "painting/tree/tree_builder.h"
#include "support/trees.h"

using pe::stacktop::By;
using pe::stacktop::comm_of;
using pe::stacktop::module_of;

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(a_comm_is_a_thread_without_its_numbers) {
  BOOST_TEST(comm_of("java") == "java");
  BOOST_TEST(comm_of("java-12") == "java");
  BOOST_TEST(comm_of("java-12/345") == "java");
  BOOST_TEST(comm_of("java-?/345") == "java");
  BOOST_TEST(comm_of("kworker/0:1-ev") == "kworker/0:1-ev");
  BOOST_TEST(comm_of("-12") == "-12");
  BOOST_TEST(comm_of("a-") == "a-");
}

BOOST_AUTO_TEST_CASE(a_module_is_what_the_text_of_a_frame_tells) {
  BOOST_TEST(module_of("libc.so.6+0x1f").value() == "libc.so.6");
  BOOST_TEST(module_of("libc.so.6+0x1f_[l]").value() == "libc.so.6");
  BOOST_TEST(module_of("[libc.so.6 <7f12a0b3>]").value() == "libc.so.6");
  BOOST_TEST(module_of("nf_hook [nf_tables]").value() == "nf_tables");
  BOOST_TEST(module_of("libc.so.1`malloc").value() == "libc.so.1");
  BOOST_TEST(module_of("[kernel]`schedule").value() == "[kernel]");
  BOOST_TEST(module_of("[jit]`a[0]").value() == "[jit]");
  BOOST_TEST(module_of("[unknown]").value() == "[unknown]");
  BOOST_TEST(module_of("[unknown] [libc.so.6]").value() == "libc.so.6");
  BOOST_TEST(module_of("schedule_[k]").value() == "[kernel]");
  BOOST_TEST(module_of("Main.run_[j]").value() == "[jit]");
  BOOST_TEST(module_of("malloc_[l]").value() == "[library]");
}

BOOST_AUTO_TEST_CASE(other_frames_have_no_module) {
  for (const char* frame : {"main", "a+0x", "a+0xyz", "+0x1f", "operator[]", "`x", ""})
    BOOST_TEST(module_of(frame).value() == pe::stacktop::kNoModule);
  BOOST_TEST(!module_of("inlined_[i]"));
}

BOOST_AUTO_TEST_CASE(an_inlined_function_is_where_its_caller_is) {
  const auto tree = pe::testing::tree_of<pe::painting::TreeBuilder>({"main;f_[l];g_[i];h_[i] 1"});
  const auto groups = group(tree, By::kModule);
  BOOST_TEST(groups.names[groups.of_node[4]] == "[library]");
}

BOOST_AUTO_TEST_SUITE_END()
