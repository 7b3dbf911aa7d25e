// How flamediff recognises counts that are samples; it can compute the noise of samples alone.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/flamediff.h"

using pe::testing::contains;
using pe::testing::flamediff;
using pe::testing::flamediff_runs;

BOOST_AUTO_TEST_SUITE(flamediff_noise)

BOOST_AUTO_TEST_CASE(one_small_count_in_twenty_is_a_tail_of_samples) {
  // The stacks of both sides have large counts without a common divisor; with `has_small`, one
  // stack has a count of three.
  const auto text_of = [](int stacks, bool has_small) {
    std::string text = has_small ? "main;small 3\n" : "";
    for (int i = has_small ? 1 : 0; i < stacks; ++i)
      text += fmt::format("main;f{} {}\n", i, 1'000'003 + i * 7919);
    return text;
  };
  BOOST_TEST(contains(flamediff({"--text"}, text_of(10, true), text_of(10, false)).out,
                      "noise: from sampling"));
  BOOST_TEST(
      contains(flamediff({"--text"}, text_of(10, true), text_of(11, false)).out, "noise: unknown"));
}

BOOST_AUTO_TEST_CASE(counts_of_another_unit_are_no_samples) {
  const std::string heap = "# unit: bytes\nmain;a 300\nmain;b 100\n";
  const auto r = flamediff({"--text"}, heap, heap);
  BOOST_TEST(r.out.starts_with("before: 400 bytes; after: 400 bytes;"));
  BOOST_TEST(contains(r.out, "noise: unknown"));
  BOOST_TEST(
      flamediff({"--folded"}, heap, heap).out.starts_with("# unit: bytes\nmain;a 300 300\n"));
  BOOST_TEST(contains(flamediff({}, heap, heap).out, "data-countname=\"bytes\""));
}

BOOST_AUTO_TEST_CASE(different_units_are_refused) {
  const std::string bytes = "# unit: bytes\nmain;a 300\n";
  const std::string samples = "# stackfold: 0.1.0\nmain;a 300\n";
  const auto r = flamediff({"--text"}, bytes, samples);
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(r.err ==
             "flamediff: the profile before counts bytes, the profile after samples: profiles of "
             "different units cannot be compared\n");
  BOOST_TEST(contains(flamediff_runs({"--text"}, {bytes, bytes}, {bytes, samples}).err,
                      "after6) samples: profiles of different units cannot be compared"));
  BOOST_TEST(flamediff({"--folded"}, bytes, samples).status == 1);
  BOOST_TEST(flamediff({"--text", "--countname", "things"}, bytes, samples).status == 0);
  BOOST_TEST(flamediff({"--text"}, samples, samples).err.empty());
}

BOOST_AUTO_TEST_CASE(a_profile_without_a_unit_is_compared_with_a_warning) {
  const auto r = flamediff({"--text"}, "main;a 300\n", "# unit: us\nmain;a 300\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.err,
                      "flamediff: the profile before does not state its unit, the profile after "
                      "counts us: compared as us (see --countname)\n"));
}

BOOST_AUTO_TEST_SUITE_END()
