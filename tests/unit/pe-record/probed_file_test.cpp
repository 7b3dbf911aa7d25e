// SPDX-License-Identifier: MIT
#include "recording/probes/probe_place.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "support/temp_dir.h"

using pe::recorder::find_probed_file;
using pe::recorder::FoundFile;
namespace fs = std::filesystem;

namespace {

const pe::recording::Target kSelf{.processes = {::getpid()}};

/// Is what was opened the file at `path`?
bool is_open(const FoundFile& found, const std::string& path) {
  const auto* image = std::get_if<pe::objects::Image>(&found.opened);
  struct stat opened = {}, wanted = {};
  return image != nullptr && ::fstat(image->fd(), &opened) == 0 &&
         ::stat(path.c_str(), &wanted) == 0 && opened.st_dev == wanted.st_dev &&
         opened.st_ino == wanted.st_ino;
}

std::string problem_of(const std::string& name, const pe::recording::Target& target) {
  try {
    find_probed_file(name, target, {});
  } catch (const pe::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(probed_file)

BOOST_AUTO_TEST_CASE(a_library_is_the_one_that_the_process_has_mapped) {
  for (const std::string name : {"libc.so.6", "libc.so", "libc", "c"}) {
    const FoundFile found = find_probed_file(name, kSelf, {});
    BOOST_TEST(found.path.ends_with("/libc.so.6"));
    BOOST_TEST(found.root == "");
    BOOST_TEST(is_open(found, found.path));
  }
}

BOOST_AUTO_TEST_CASE(a_library_that_the_process_has_not_mapped_is_refused) {
  BOOST_TEST(problem_of("libBrokenLocale", kSelf).find(" has not mapped a library of that name") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_mapped_library_is_also_found_by_its_soname) {
  const std::string soname = "libBrokenLocale.so.1";
  const pe::testing::TempDir dir;
  const std::string path = dir / "libBrokenLocale-2.31.so";
  fs::copy_file(find_probed_file(soname, {}, {}).path, path);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  BOOST_REQUIRE(library != nullptr);
  BOOST_TEST(is_open(find_probed_file(soname, kSelf, {}), path));
  BOOST_TEST(problem_of("libBrokenLocale.so.2", kSelf) != "");
  ::dlclose(library);
  BOOST_TEST(problem_of(soname, kSelf).find(" has not mapped a library of that name") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_program_of_the_process_is_the_one_that_runs) {
  const FoundFile found = find_probed_file("", kSelf, {});
  BOOST_TEST(is_open(found, "/proc/self/exe"));
}

BOOST_AUTO_TEST_CASE(a_path_is_opened_once) {
  const pe::testing::TempDir dir;
  const std::string path = dir / "program";
  fs::copy_file("/proc/self/exe", path);
  const FoundFile found = find_probed_file(path, kSelf, {});
  BOOST_TEST(is_open(found, path));
  fs::remove(path);
  fs::copy_file("/bin/true", path);
  BOOST_TEST(!is_open(found, path));
}

BOOST_AUTO_TEST_CASE(without_a_process_programs_are_searched_in_path) {
  BOOST_TEST(is_open(find_probed_file("true", {}, {}), "/bin/true"));
  const FoundFile of_command = find_probed_file("", {.is_command = true}, {"true"});
  BOOST_TEST(is_open(of_command, "/bin/true"));
}

BOOST_AUTO_TEST_CASE(names_that_lead_nowhere_are_refused) {
  BOOST_TEST(problem_of("no-such-program", {}) ==
             "--event: no library or program has the name 'no-such-program': write its path");
  BOOST_TEST(problem_of("", {.is_everything = true}) ==
             "--event: write the program's or library's PATH before the function: PATH:FUNC");
  const FoundFile missing = find_probed_file("/no/such/file", {}, {});
  BOOST_CHECK(std::get<pe::objects::OpenFailure>(missing.opened) ==
              pe::objects::OpenFailure::kMissing);
}

BOOST_AUTO_TEST_SUITE_END()
