// SPDX-License-Identifier: MIT
#include "stacks/images.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

#include "support/own_sample.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(images)

namespace {

/// The tables of all files that this process has mapped, those without any left out.
std::vector<unwind::UnwindTable*> tables(stacks::Images& images, const session::History& history) {
  std::set<unwind::UnwindTable*> tables;
  for (const auto& [start, mapping] : history.processes().space(testing::kOwnPid)->all())
    if (!mapping.file->is_anonymous())
      tables.insert(images.table(images.number_of(mapping, testing::kOwnPid)));
  tables.erase(nullptr);
  return {tables.begin(), tables.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_read_once) {
  session::History history;
  testing::tell_own_mappings(history);
  stacks::Images images(binaries::FileMatch::kAny);
  const auto first = tables(images, history);
  BOOST_TEST(first.size() > 2u);  // the program, libc, libstdc++
  BOOST_TEST((tables(images, history) == first));
}

BOOST_AUTO_TEST_CASE(what_files_can_make_us_read_is_bounded) {
  session::History history;
  testing::tell_own_mappings(history);
  stacks::Images images(binaries::FileMatch::kAny, 1);
  BOOST_TEST(tables(images, history).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
