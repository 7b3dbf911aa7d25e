// SPDX-License-Identifier: MIT
#include "profile-push/profile_push.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/io/deflate.h"
#include "support/run_tool.h"
#include "support/temp_dir.h"

namespace {

using pe::testing::Result;
using pe::testing::TempDir;

Result profile_push(const std::vector<std::string>& args, std::string_view input = "") {
  return pe::testing::run_tool(&pe::profile_push_main, args, input);
}

/// The profiles of a spool, by name.
std::vector<std::string> names_in_spool(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".gz")
      names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profile_push_tool)

BOOST_AUTO_TEST_CASE(puts_a_profile_into_the_spool) {
  const TempDir dir;
  const Result r = profile_push({"--spool", dir / "s", "--from", "1700000000.5", "--until",
                                 "1700000060", "--name", "app", "--label", "env=test"},
                                pe::gzip("a profile", 6));
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(r.err.empty());
  const auto names = names_in_spool(dir / "s");
  BOOST_REQUIRE(names.size() == 1U);
  BOOST_TEST(names[0] == "1700000000500-1700000060000-0.pprof.gz");
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_profile) {
  const TempDir dir;
  const Result r = profile_push({"--spool", dir / "s"}, "main;work 1\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err ==
             "profile-push: stdin: not a compressed pprof profile: stackfold --to pprof writes "
             "one\n");
  BOOST_TEST(!std::filesystem::exists(dir / "s"));
}

BOOST_AUTO_TEST_CASE(refuses_a_profile_that_was_cut_off_or_damaged) {
  const TempDir dir;
  const std::string whole = pe::gzip(std::string(5000, 'a') + "a profile", 6);
  for (const std::size_t bytes : {whole.size() - 1, whole.size() / 2, std::size_t{10}}) {
    const Result r = profile_push({"--spool", dir / "s"}, whole.substr(0, bytes));
    BOOST_TEST(r.status == 1);
    BOOST_TEST(r.err == "profile-push: stdin: not a whole profile: the gzip data is cut off\n");
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  BOOST_TEST(profile_push({"--spool", dir / "s"}, damaged).err ==
             "profile-push: stdin: not a whole profile: the gzip data is damaged\n");
  BOOST_TEST(!std::filesystem::exists(dir / "s"));
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_options) {
  const TempDir dir;
  const struct {
    std::vector<std::string> args;
    std::string err;
  } cases[] = {
      {{"--name", "a b"}, "--name: not a name of letters, digits, '-', '.', '/' and '_': 'a b'"},
      {{"--label", "a"},
       "--label: not KEY=VALUE with a KEY of letters, digits, '.' and '_', and a VALUE without ',' "
       "and '}': 'a'"},
      {{"--label", "a=1", "--label", "a=2"}, "--label: a label is given twice: 'a'"},
      {{"--from", "5", "--until", "4"}, "--from: later than --until"},
      {{"--until", "10000000000"},
       "--until: not a number of seconds up to 9999999999: '10000000000'"},
      {{"--rate", "0"}, "--rate: not a number of samples a second: '0'"},
      {{"--spool-size", "0"}, "--spool-size: not a number of bytes up to 1024G, such as 256M: '0'"},
      {{"--spool", ""}, "--spool: not a folder: ''"},
      {{"--follow"}, "--follow: only with --url"},
      {{"--token-file", "x"}, "--token-file: only with --url"},
      {{"--url", "localhost", "--name", "x"}, "--name: not with --url"},
      {{"--url", "localhost", "x.gz"}, "--url: sends what is in the spool, and takes no file"},
      {{"--url", "localhost", "--tenant", "a\nb"},
       "--tenant: not a name of letters, digits and !-_.*'(): 'a\\x0ab'"},
      {{"--url", "localhost", "--timeout", "0"}, "--timeout: not whole seconds from 1: '0'"},
      {{"--url", "localhost", "--timeout", "4000"},
       "--timeout: not a number of seconds up to 3600: '4000'"},
      {{"a.gz", "b.gz"}, "one profile at a time"},
  };
  for (const auto& one : cases) {
    const Result r = profile_push(one.args);
    BOOST_TEST(r.status == 2, one.err);
    BOOST_TEST(r.err == "profile-push: " + one.err + " (see --help)\n");
  }
}

BOOST_AUTO_TEST_CASE(a_dry_run_reads_and_writes_nothing) {
  const TempDir dir;
  const std::string token = dir.file("token", "secret\n");
  BOOST_REQUIRE(::chmod(token.c_str(), S_IRUSR) == 0);
  BOOST_TEST(profile_push({"--dry-run", "--spool", dir / "s"}, "no profile").status == 0);
  BOOST_TEST(
      profile_push({"--dry-run", "--spool", dir / "s", "--url", "localhost", "--token-file", token})
          .status == 0);
  BOOST_TEST(!std::filesystem::exists(dir / "s"));
  const Result r = profile_push({"--dry-run", "--url", "localhost", "--token-file", dir / "none"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "profile-push: " + (dir / "none") + ": No such file or directory\n");
}

BOOST_AUTO_TEST_CASE(an_empty_spool_is_done_at_once) {
  const TempDir dir;
  const Result r = profile_push({"--spool", dir / "s", "--url", "http://localhost:1"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "profile-push: 0 profiles sent\n");
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_there_leaves_it_in_the_spool) {
  const TempDir dir;
  BOOST_TEST(profile_push({"--spool", dir / "s"}, pe::gzip("a profile", 6)).status == 0);
  const Result r = profile_push({"--spool", dir / "s", "--url", "http://127.0.0.1:1"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err.find("http://127.0.0.1:1/ingest: ") != std::string::npos, r.err);
  BOOST_TEST(r.err.ends_with("0 profiles sent; 1 profile not sent yet, in " + (dir / "s") +
                             ": the next run sends it\n"),
             r.err);
  BOOST_TEST(names_in_spool(dir / "s").size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
