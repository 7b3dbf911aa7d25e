// SPDX-License-Identifier: MIT
#include "recording/inprocess/command.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_dir.h"

using pe::inprocess::programs_of;
using Programs = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(command)

namespace {

std::string script(const pe::testing::TempDir& folder, std::string_view name,
                   const std::string& line) {
  const std::string path = folder.file(name, line + "\nprint(1)\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_that_is_no_script_is_executed_alone) {
  const pe::testing::TempDir folder;
  const std::string path = folder.file("program",
                                       "\x7f"
                                       "ELF");
  BOOST_TEST(programs_of(path) == Programs{path});
  BOOST_TEST(programs_of(folder / "none") == Programs{folder / "none"});
}

BOOST_AUTO_TEST_CASE(a_script_is_followed_by_its_interpreters) {
  const pe::testing::TempDir folder;
  const std::string inner = script(folder, "inner", "#!/bin/sh -e");
  const std::string outer = script(folder, "outer", "#! " + inner);
  BOOST_TEST(programs_of(outer) == Programs({outer, inner, "/bin/sh"}));
}

BOOST_AUTO_TEST_CASE(a_script_of_env_is_followed_by_the_program_that_env_finds) {
  const pe::testing::TempDir folder;
  const std::string path = script(folder, "script", "#!/usr/bin/env \t sh");
  const Programs found = programs_of(path);
  BOOST_TEST_REQUIRE(found.size() == 2U);
  BOOST_TEST(found[1].ends_with("/sh"));
  const std::string unknown = script(folder, "unknown", "#!/usr/bin/env no-such-program");
  BOOST_TEST(programs_of(unknown) == Programs({unknown, "/usr/bin/env"}));
}

BOOST_AUTO_TEST_CASE(scripts_that_interpret_each_other_end) {
  const pe::testing::TempDir folder;
  const std::string path = script(folder, "script", "#!" + folder / "script");
  BOOST_TEST(programs_of(path).size() == 6U);
}

BOOST_AUTO_TEST_SUITE_END()
