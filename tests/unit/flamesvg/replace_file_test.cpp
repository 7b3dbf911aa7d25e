// SPDX-License-Identifier: MIT
#include "flamesvg/palette_map.h"

#include <sys/stat.h>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(replaced_files)

BOOST_AUTO_TEST_CASE(the_new_content_is_all_there_is) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("a", "old and longer");
  for (const auto outlives : {pe::Outlives::kProcess, pe::Outlives::kMachine}) {
    pe::replace_file(path, "new", outlives);
    BOOST_TEST(content_of(path) == "new");
  }
  BOOST_TEST(std::distance(fs::directory_iterator(dir / ""), fs::directory_iterator()) == 1);
}

BOOST_AUTO_TEST_CASE(a_link_is_replaced_and_its_file_stays) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("a", "precious");
  fs::create_symlink(path, dir / "link");
  pe::replace_file(dir / "link", "new");
  BOOST_TEST(content_of(path) == "precious");
  BOOST_TEST(content_of(dir / "link") == "new");
}

BOOST_AUTO_TEST_CASE(a_failure_leaves_nothing) {
  const pe::testing::TempDir dir;
  fs::create_directory(dir / "folder");
  BOOST_CHECK_THROW(pe::replace_file(dir / "folder", "new"), pe::Error);
  BOOST_CHECK_THROW(pe::replace_file(dir / "none/a", "new"), pe::Error);
  BOOST_TEST(std::distance(fs::directory_iterator(dir / ""), fs::directory_iterator()) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
