// SPDX-License-Identifier: MIT
#include "profile-push/spool_file.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/io/deflate.h"
#include "base/io/gzip.h"
#include "base/io/input.h"
#include "support/memory_input.h"

namespace {

using pe::push::parse_spool_content;
using pe::push::parse_spool_name;
using pe::push::spool_content;
using pe::push::SpoolName;

constexpr const char* kName = "1763809200000-1763809260000-7.pprof.gz";

}  // namespace

BOOST_AUTO_TEST_SUITE(spool_files)

BOOST_AUTO_TEST_CASE(a_name_has_the_times) {
  const auto name = parse_spool_name(kName);
  BOOST_REQUIRE(name.has_value());
  BOOST_TEST(name->times.from_ms == 1'763'809'200'000U);
  BOOST_TEST(name->times.until_ms == 1'763'809'260'000U);
  BOOST_TEST(name->number == 7U);
  BOOST_TEST(name->text() == kName);
}

BOOST_AUTO_TEST_CASE(names_sort_by_age_and_then_number) {
  const SpoolName early{.times = {.from_ms = 5, .until_ms = 7}, .number = 3};
  const SpoolName later{.times = {.from_ms = 6, .until_ms = 6}, .number = 0};
  const SpoolName second{.times = {.from_ms = 6, .until_ms = 6}, .number = 10};
  BOOST_CHECK(early < later);
  BOOST_CHECK(later < second);
  BOOST_TEST(early.text() < later.text());
}

BOOST_AUTO_TEST_CASE(what_is_no_name_is_left_alone) {
  for (const char* name :
       {"", "counts", "sending", "1763809200000-1763809260000-7.pprof", "a-b-c.pprof.gz",
        "1763809200000-1763809260000-07.pprof.gz", "1763809200000-1763809260000-.pprof.gz",
        "1763809200000-1763809260000.pprof.gz", "176380920000-1763809260000-7.pprof.gz",
        "1763809260000-1763809200000-7.pprof.gz", "1763809200000-1763809260000-+7.pprof.gz",
        "1763809200000-1763809260000-99999999999.pprof.gz",
        "../17638092000-1763809260000-7.pprof.gz", "1763809200000-1763809260000-7.pprof.gz.AbC123"})
    BOOST_TEST(!parse_spool_name(name).has_value(), "took '" << name << "'");
}

BOOST_AUTO_TEST_CASE(content_comes_back) {
  const std::string pprof = pe::gzip("a profile", 6);
  const std::string content =
      spool_content({.series = "app{a=b c,d=e}", .rate_hz = 99, .pprof = pprof});
  const auto profile = parse_spool_content(content);
  BOOST_REQUIRE(profile.has_value());
  BOOST_TEST(profile->series == "app{a=b c,d=e}");
  BOOST_TEST(profile->rate_hz == 99U);
  BOOST_TEST(profile->pprof == pprof);
}

BOOST_AUTO_TEST_CASE(readers_of_gzip_see_the_profile_alone) {
  const std::string content =
      spool_content({.series = "app{}", .rate_hz = 0, .pprof = pe::gzip("a profile", 6)});
  const pe::Fd file = pe::testing::memory_file(content);
  pe::Input input = pe::Input::open("-", file.get());
  pe::GzipReader reader(input);
  std::string text(100, '\0');
  text.resize(reader.read(std::as_writable_bytes(std::span(text))));
  BOOST_TEST(text == "a profile");
  BOOST_TEST(reader.damage().empty());
}

BOOST_AUTO_TEST_CASE(what_we_have_not_written_is_nothing) {
  const std::string whole = spool_content({.series = "app{}", .rate_hz = 1, .pprof = ""});
  BOOST_TEST(parse_spool_content(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(!parse_spool_content(std::string_view(whole).substr(0, size)).has_value(), size);
  BOOST_TEST(!parse_spool_content(pe::gzip("a profile", 6)).has_value());
  BOOST_TEST(!parse_spool_content(spool_content({.series = "", .rate_hz = 1, .pprof = "x"})));
}

BOOST_AUTO_TEST_SUITE_END()
