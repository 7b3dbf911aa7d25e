// SPDX-License-Identifier: MIT
#include "recording/probes/probe_name.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/counters/event_name.h"

BOOST_AUTO_TEST_SUITE(probe_name)

namespace {

using namespace pe::recording;

/// "PATH|FUNC", and the other parts that are there.
std::string parts_of(const std::string& text) {
  const ProbeName probe = parse_probe(text);
  std::string parts = probe.path + "|";
  if (!probe.provider.empty())
    parts += probe.provider + ":";
  parts += probe.function;
  if (probe.offset != 0)
    parts += "+" + std::to_string(probe.offset);
  if (probe.address)
    parts += "@" + std::to_string(*probe.address);
  if (probe.line != 0)
    parts += probe.source_file + "#" + std::to_string(probe.line);
  return parts;
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_probe(text);
  } catch (const pe::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_probe_has_a_file_and_a_function) {
  BOOST_TEST(parts_of("uprobe:/bin/sh:main") == "/bin/sh|main");
  BOOST_TEST(parts_of("uretprobe:libc.so.6:malloc") == "libc.so.6|malloc");
  BOOST_TEST(parts_of("uprobe:main") == "|main");
  BOOST_TEST(parts_of("uprobe:/bin/sh:main+0x10") == "/bin/sh|main+16");
  BOOST_TEST(parts_of("uprobe:/bin/sh:0x1234") == "/bin/sh|@4660");
  BOOST_TEST(parts_of("kprobe:vfs_read+4") == "|vfs_read+4");
}

BOOST_AUTO_TEST_CASE(two_colons_are_a_scope) {
  BOOST_TEST(parts_of("uprobe:a.out:ns::f(int, char)") == "a.out|ns::f(int, char)");
  BOOST_TEST(parts_of("uprobe:ns::f") == "|ns::f");
  BOOST_TEST(parts_of("uprobe:a.out:ns::operator+") == "a.out|ns::operator+");
  BOOST_TEST(parts_of("uprobe:a.out:*::get*") == "a.out|*::get*");
}

BOOST_AUTO_TEST_CASE(a_number_after_a_file_is_a_line) {
  BOOST_TEST(parts_of("uprobe:a.out:dir/file.c:12") == "a.out|dir/file.c#12");
  BOOST_TEST(parts_of("uprobe:file.c:12") == "|file.c#12");
}

BOOST_AUTO_TEST_CASE(a_static_probe_has_a_provider) {
  BOOST_TEST(parts_of("usdt:/lib/libc.so.6:libc:setjmp") == "/lib/libc.so.6|libc:setjmp");
  BOOST_TEST(parts_of("usdt:/lib/libc.so.6:setjmp") == "/lib/libc.so.6|setjmp");
  BOOST_TEST(parts_of("usdt:libc:setjmp") == "|libc:setjmp");
}

BOOST_AUTO_TEST_CASE(malformed_probes_are_refused) {
  BOOST_TEST(refusal("uprobe:") ==
             "--event: 'uprobe:': a function is missing: write uprobe:PATH:FUNC");
  BOOST_TEST(refusal("uprobe:/bin/sh:0xz") ==
             "--event: 'uprobe:/bin/sh:0xz': not an address: '0xz'");
  BOOST_TEST(refusal("usdt:setjmp") == "--event: 'usdt:setjmp': write usdt:PATH:PROVIDER:NAME");
  BOOST_TEST(refusal("kprobe:vfs_*") ==
             "--event: 'kprobe:vfs_*': in the kernel, name one function");
  BOOST_TEST(refusal("uretprobe:/bin/sh:main+4") ==
             "--event: 'uretprobe:/bin/sh:main+4': a return has no offset, address or line: name "
             "the function");
}

BOOST_AUTO_TEST_CASE(commas_in_brackets_do_not_end_a_probe) {
  const std::vector<std::string> wanted = {"uprobe:a:f(int, char)", "cycles", "uprobe:a:g<A, B>",
                                           "uprobe:a:operator<", "usdt:a:b:c"};
  BOOST_TEST(split_events("uprobe:a:f(int, char),cycles,uprobe:a:g<A, B>,uprobe:a:operator<,"
                          "usdt:a:b:c") == wanted,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(operators_and_arrows_in_a_name_are_no_brackets) {
  for (const std::string function :
       {"operator==<A, B>(A, B)", "operator()<A, B>(A, B)", "A::operator->", "operator<=>",
        "g(decltype(a->b), int)", "my_operator<A, B>"}) {
    const std::vector<std::string> wanted = {"uprobe:a:" + function, "cycles"};
    BOOST_TEST(split_events("uprobe:a:" + function + ",cycles") == wanted,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_pattern_matches_the_whole_name) {
  using pe::matches_pattern;
  BOOST_TEST(matches_pattern("mal*", "malloc"));
  BOOST_TEST(matches_pattern("*", ""));
  BOOST_TEST(matches_pattern("m?l*c", "malloc"));
  BOOST_TEST(matches_pattern("*a*a*", "banana"));
  BOOST_TEST(!matches_pattern("mal", "malloc"));
  BOOST_TEST(!matches_pattern("*x", "malloc"));
  BOOST_TEST(!matches_pattern("?", ""));
}

BOOST_AUTO_TEST_SUITE_END()
