// SPDX-License-Identifier: MIT
#include "profile-push/spool.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"
#include "support/temp_dir.h"

namespace {

namespace fs = std::filesystem;
using pe::push::Outbox;
using pe::push::Spool;
using pe::push::TimeRange;
using pe::testing::TempDir;

constexpr std::uint64_t kRoom = std::uint64_t{1} << 20U;

/// 100 bytes.
std::string profile_of(const std::string& text) {
  const std::string series = "app{text=" + text + "}";
  const std::size_t bytes =
      pe::push::spool_content({.series = series, .rate_hz = 1, .pprof = ""}).size();
  return pe::push::spool_content(
      {.series = series, .rate_hz = 1, .pprof = std::string(100 - bytes, 'p')});
}

TimeRange minute(std::uint64_t number) {
  return {.from_ms = 60'000 * number, .until_ms = 60'000 * (number + 1)};
}

std::uint64_t minute_of(const pe::push::Outgoing& outgoing) {
  return outgoing.name.times.from_ms / 60'000;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spools)

BOOST_AUTO_TEST_CASE(gives_the_oldest_first) {
  const TempDir dir;
  Spool spool(dir / "a/b/spool", kRoom);
  for (const std::uint64_t number : {3, 1, 2})
    spool.put(minute(number), profile_of(std::to_string(number)));
  auto outbox = Outbox::open(spool);
  for (const std::uint64_t number : {1, 2, 3}) {
    const auto outgoing = outbox->take();
    BOOST_REQUIRE(outgoing.has_value());
    BOOST_TEST(minute_of(*outgoing) == number);
    BOOST_TEST(outgoing->content == profile_of(std::to_string(number)));
    outbox->sent(*outgoing);
  }
  BOOST_TEST(!outbox->take().has_value());
  BOOST_TEST(spool.counts().sent == 3U);
  BOOST_TEST(spool.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(is_for_its_owner_alone) {
  const TempDir dir;
  const Spool spool(dir / "spool", kRoom);
  struct stat status = {};
  BOOST_REQUIRE(::stat((dir / "spool").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777U) == 0700U);
}

BOOST_AUTO_TEST_CASE(what_is_given_back_is_the_next) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  spool.put(minute(1), profile_of("a"));
  spool.put(minute(2), profile_of("b"));
  auto outbox = Outbox::open(spool);
  for (int i = 0; i < 3; ++i) {
    const auto outgoing = outbox->take();
    BOOST_TEST(minute_of(*outgoing) == 1U);
    outbox->give_back(*outgoing);
  }
  BOOST_TEST(spool.waiting() == 2U);
}

BOOST_AUTO_TEST_CASE(profiles_of_the_same_time_are_two) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  spool.put(minute(1), profile_of("a"));
  auto outbox = Outbox::open(spool);
  const auto first = outbox->take();
  spool.put(minute(1), profile_of("b"));  // while the other is on its way
  outbox->give_back(*first);
  BOOST_TEST(spool.waiting() == 2U);
  BOOST_TEST(outbox->take()->content == profile_of("a"));
  BOOST_TEST(outbox->take()->content == profile_of("b"));
}

BOOST_AUTO_TEST_CASE(drops_and_counts_the_oldest_when_it_is_full) {
  const TempDir dir;
  Spool spool(dir / "spool", 350);
  std::uint64_t dropped = 0;
  for (std::uint64_t number = 1; number <= 5; ++number)
    dropped += spool.put(minute(number), profile_of("a"));
  BOOST_TEST(dropped == 2U);
  BOOST_TEST(spool.counts().dropped == 2U);
  BOOST_TEST(spool.waiting() == 3U);
  BOOST_TEST(minute_of(*Outbox::open(spool)->take()) == 3U);
}

BOOST_AUTO_TEST_CASE(spares_what_is_on_its_way_and_counts_its_bytes) {
  const TempDir dir;
  Spool spool(dir / "spool", 250);
  spool.put(minute(1), profile_of("a"));
  spool.put(minute(2), profile_of("b"));
  auto outbox = Outbox::open(spool);
  const auto first = outbox->take();
  BOOST_TEST(spool.put(minute(3), profile_of("c")) == 1U);
  outbox->sent(*first);
  BOOST_TEST(minute_of(*outbox->take()) == 3U);
  BOOST_TEST(spool.counts().sent == 1U);
  BOOST_TEST(spool.counts().dropped == 1U);
}

BOOST_AUTO_TEST_CASE(a_profile_larger_than_the_spool_is_counted) {
  const TempDir dir;
  Spool spool(dir / "spool", 99);
  BOOST_CHECK_THROW(spool.put(minute(1), profile_of("a")), pe::Error);
  BOOST_TEST(spool.counts().dropped == 1U);
  BOOST_TEST(spool.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(counts_outlive_the_process) {
  const TempDir dir;
  for (std::uint64_t run = 1; run <= 2; ++run) {
    Spool spool(dir / "spool", kRoom);
    spool.put(minute(1), profile_of("a"));
    auto outbox = Outbox::open(spool);
    outbox->refused(*outbox->take());
    BOOST_TEST(Spool(dir / "spool", kRoom).counts().refused == run);
  }
}

BOOST_AUTO_TEST_CASE(two_cannot_send) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  auto outbox = Outbox::open(spool);
  BOOST_TEST(outbox.has_value());
  Spool other(dir / "spool", kRoom);
  BOOST_TEST(!Outbox::open(other).has_value());
  outbox.reset();
  BOOST_TEST(Outbox::open(other).has_value());
}

BOOST_AUTO_TEST_CASE(what_a_killed_sender_had_waits_again) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  spool.put(minute(1), profile_of("a"));
  {
    auto killed = Outbox::open(spool);
    BOOST_TEST(killed->take().has_value());
  }
  BOOST_TEST(fs::exists(dir / "spool/sending/0000000060000-0000000120000-0.pprof.gz"));
  BOOST_TEST(Outbox::open(spool)->take()->content == profile_of("a"));
}

BOOST_AUTO_TEST_CASE(half_written_profiles_go_and_are_counted) {
  const TempDir dir;
  {
    const Spool spool(dir / "spool", kRoom);  // makes the folder
  }
  const std::string half = dir.file("spool/0000000060000-0000000120000-0.pprof.gz.AbC123", "\x1f");
  const std::string counts = dir.file("spool/counts.AbC123", "se");
  const std::string other = dir.file("spool/notes.AbC123", "mine");
  const Spool spool(dir / "spool", kRoom);
  BOOST_TEST(!fs::exists(half));
  BOOST_TEST(!fs::exists(counts));
  BOOST_TEST(fs::exists(other));
  BOOST_TEST(spool.counts().damaged == 1U);
  BOOST_TEST(Spool(dir / "spool", kRoom).counts().damaged == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_no_profile_goes_and_is_counted) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  const std::string empty = dir.file("spool/0000000060000-0000000120000-0.pprof.gz", "");
  const std::string target = dir.file("target", profile_of("a"));
  fs::create_symlink(target, dir / "spool/0000000060001-0000000120000-0.pprof.gz");
  spool.put(minute(2), profile_of("b"));
  auto outbox = Outbox::open(spool);
  BOOST_TEST(outbox->take()->content == profile_of("b"));
  BOOST_TEST(spool.counts().damaged == 2U);
  BOOST_TEST(fs::exists(target));
  BOOST_TEST(!fs::exists(empty));
}

BOOST_AUTO_TEST_CASE(a_folder_called_like_a_profile_is_in_nobodys_way) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  const std::string folder = dir / "spool/0000000060000-0000000120000-0.pprof.gz";
  fs::create_directory(folder);
  spool.put(minute(2), profile_of("b"));
  auto outbox = Outbox::open(spool);
  const auto outgoing = outbox->take();
  BOOST_REQUIRE(outgoing);
  BOOST_TEST(outgoing->content == profile_of("b"));
  outbox->sent(*outgoing);
  BOOST_TEST(!outbox->take());
  BOOST_TEST(fs::exists(folder));
  BOOST_TEST(spool.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(counts_that_cannot_be_written_keep_no_profile_there) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  fs::create_directories(dir / "spool/counts/in_the_way");  // so that nothing replaces it
  spool.put(minute(1), profile_of("a"));
  auto outbox = Outbox::open(spool);
  const auto outgoing = outbox->take();
  BOOST_REQUIRE(outgoing);
  outbox->refused(*outgoing);
  BOOST_TEST(spool.waiting() == 0U);
  BOOST_TEST(spool.counts().refused == 1U);
}

BOOST_AUTO_TEST_CASE(a_fifo_in_place_of_the_counts_is_not_waited_for) {
  const TempDir dir;
  Spool spool(dir / "spool", kRoom);
  BOOST_REQUIRE(::mkfifo((dir / "spool/counts").c_str(), S_IRWXU) == 0);
  BOOST_TEST(spool.counts().sent == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
