// SPDX-License-Identifier: MIT
#include "base/io/new_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/io/input.h"
#include "support/temp_dir.h"

namespace {

namespace fs = std::filesystem;
using pe::NewFile;
using pe::read_small_file;

std::ptrdiff_t entries_in(const pe::testing::TempDir& dir) {
  return std::distance(fs::directory_iterator(dir / ""), fs::directory_iterator());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(new_files)

BOOST_AUTO_TEST_CASE(a_file_has_its_name_only_when_kept) {
  const pe::testing::TempDir dir;
  {
    const NewFile lost(dir / "a");  // never kept
  }
  BOOST_TEST(entries_in(dir) == 0);
  NewFile file(dir / "a", 0600);
  BOOST_TEST(!fs::exists(dir / "a"));
  BOOST_TEST(::write(file.fd().get(), "new", 3) == 3);
  file.keep();
  BOOST_TEST(read_small_file(dir / "a", 9).value() == "new");
  BOOST_TEST(entries_in(dir) == 1);
  BOOST_CHECK(fs::status(dir / "a").permissions() ==
              (fs::perms::owner_read | fs::perms::owner_write));
}

BOOST_AUTO_TEST_CASE(a_link_and_a_pipe_at_the_name_are_replaced_unopened) {
  const pe::testing::TempDir dir;
  const std::string precious = dir.file("precious", "old");
  fs::create_symlink(precious, dir / "link");
  NewFile(dir / "link").keep();
  BOOST_TEST(read_small_file(precious, 9).value() == "old");
  BOOST_TEST(fs::is_regular_file(fs::symlink_status(dir / "link")));
  BOOST_REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  NewFile(dir / "pipe").keep();  // an open of the pipe would wait for a reader
  BOOST_TEST(fs::is_regular_file(dir / "pipe"));
}

BOOST_AUTO_TEST_CASE(the_longest_name_is_possible) {
  const pe::testing::TempDir dir;
  const std::string path = dir / std::string(255, 'n');
  NewFile(path).keep();
  BOOST_TEST(fs::exists(path));
}

BOOST_AUTO_TEST_CASE(a_symbolic_link_replaces_what_was_there_but_no_folder) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("a", "old");
  pe::replace_link(path, "elsewhere");
  BOOST_TEST(fs::read_symlink(path) == "elsewhere");
  fs::create_directory(dir / "folder");
  BOOST_CHECK_THROW(pe::replace_link(dir / "folder", "elsewhere"), pe::Error);
  BOOST_TEST(entries_in(dir) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
