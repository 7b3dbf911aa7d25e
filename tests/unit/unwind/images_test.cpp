// SPDX-License-Identifier: MIT
#include "unwind/stacks/images.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

#include "base/fd.h"
#include "support/own_sample.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(images)

namespace {

/// The tables of all files that this process has mapped; files without a table are omitted.
std::vector<unwind::UnwindTable*> tables(unwind::Images& images, const stream::History& history) {
  std::set<unwind::UnwindTable*> tables;
  for (const auto& [start, mapping] : history.processes().space(testing::kOwnPid)->all())
    if (!mapping.file->is_anonymous())
      tables.insert(images.table(images.number_of(mapping, testing::kOwnPid)));
  tables.erase(nullptr);
  return {tables.begin(), tables.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_read_once) {
  stream::History history;
  testing::add_own_mappings(history);
  unwind::Images images(objects::FileMatch::kAny);
  const auto first = tables(images, history);
  BOOST_TEST(first.size() > 2u);  // the program, libc, libstdc++
  BOOST_TEST((tables(images, history) == first));
}

BOOST_AUTO_TEST_CASE(what_files_can_make_us_read_is_bounded) {
  stream::History history;
  testing::add_own_mappings(history);
  unwind::Images images(objects::FileMatch::kAny, 1);
  BOOST_TEST(tables(images, history).size() == 1u);
}

BOOST_AUTO_TEST_CASE(that_there_were_no_descriptors_is_known_of_a_file_without_a_table) {
  stream::History history;
  testing::add_own_mappings(history);
  unwind::Images images(objects::FileMatch::kAny);
  std::vector<Fd> all;
  do
    all.emplace_back(::open("/", O_PATH | O_CLOEXEC));
  while (all.back());
  const auto found = tables(images, history);
  std::size_t lacking = 0;
  for (const auto& [start, mapping] : history.processes().space(testing::kOwnPid)->all())
    lacking += images.lacked_descriptors(*mapping.file) ? 1 : 0;
  all.clear();
  BOOST_TEST(tables(images, history).size() > found.size());  // the files were tried again
  BOOST_TEST(found.size() <= 1U);                             // the vdso needs no descriptor
  BOOST_TEST(lacking > 2U);
  unwind::Images later(objects::FileMatch::kAny);
  tables(later, history);
  for (const auto& [start, mapping] : history.processes().space(testing::kOwnPid)->all())
    BOOST_TEST(!later.lacked_descriptors(*mapping.file));
}

BOOST_AUTO_TEST_SUITE_END()
