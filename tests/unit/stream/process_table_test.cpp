// SPDX-License-Identifier: MIT
#include "stream/proc/process_table.h"
#include "support/costly.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>

using pe::stream::AddressSpace;
using pe::stream::ProcessTable;

namespace {

/// "path+offset" of the mapping at an address; empty if there is none.
std::string at(const ProcessTable& table, std::uint32_t pid, std::uint64_t avma) {
  const auto* mapping = table.find(pid, avma);
  return mapping == nullptr ? ""
                            : mapping->file->path + "+" +
                                  std::to_string(avma - mapping->start + mapping->file_offset);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(process_table)

BOOST_AUTO_TEST_CASE(a_mapping_covers_its_range_only) {
  ProcessTable table;
  table.map(1, 1000, 500, 70, {"a"});
  BOOST_TEST(at(table, 1, 999) == "");
  BOOST_TEST(at(table, 1, 1000) == "a+70");
  BOOST_TEST(at(table, 1, 1499) == "a+569");
  BOOST_TEST(at(table, 1, 1500) == "");
  BOOST_TEST(at(table, 2, 1000) == "");
}

BOOST_AUTO_TEST_CASE(a_new_mapping_cuts_a_hole_into_an_old_one) {
  ProcessTable table;
  table.map(1, 1000, 1000, 0, {"old"});
  table.map(1, 1300, 100, 0, {"new"});
  BOOST_TEST(at(table, 1, 1299) == "old+299");
  BOOST_TEST(at(table, 1, 1300) == "new+0");
  BOOST_TEST(at(table, 1, 1400) == "old+400");
}

BOOST_AUTO_TEST_CASE(any_sequence_of_mappings_agrees_with_a_map_of_bytes) {
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same sequence each time
  constexpr std::uint64_t kBytes = 200;
  std::map<std::uint64_t, std::string> truth;
  ProcessTable table;
  for (int step = 0; step < 500; ++step) {
    const std::uint64_t start = random() % kBytes;
    const std::uint64_t size = 1 + random() % 50;
    const std::string path = "m" + std::to_string(step);
    table.map(1, start, size, 7, {path});
    for (std::uint64_t i = 0; i < size; ++i)
      truth[start + i] = path + "+" + std::to_string(7 + i);
    for (std::uint64_t avma = 0; avma < kBytes + 60; ++avma)
      BOOST_REQUIRE_EQUAL(at(table, 1, avma), truth.contains(avma) ? truth[avma] : "");
  }
}

constexpr std::uint64_t kHuge = 2UL << 20;

BOOST_AUTO_TEST_CASE(text_that_moves_to_huge_pages_stays_that_of_its_file) {
  ProcessTable table;
  table.map(1, kHuge - 4096, 3 * kHuge, 8192, {"/bin/file"});
  table.map(1, kHuge, kHuge, 0, {"//anon"});
  table.map(1, kHuge, kHuge, 0, {"/anon_hugepage (deleted)"});
  BOOST_TEST(at(table, 1, kHuge) == "/bin/file+12288");
  BOOST_TEST(at(table, 1, 2 * kHuge) == "/bin/file+" + std::to_string(12288 + kHuge));
}

BOOST_AUTO_TEST_CASE(only_huge_pages_are_taken_for_moved_text) {
  ProcessTable table;
  table.map(1, kHuge - 4096, 4 * kHuge, 8192, {"/bin/file"});
  table.map(1, kHuge, kHuge + 4096, 0, {"//anon"});
  BOOST_TEST(at(table, 1, kHuge) == "//anon+0");
}

BOOST_AUTO_TEST_CASE(moved_text_is_over_one_file_only) {
  ProcessTable table;
  table.map(1, 0, kHuge + 4096, 0, {"/bin/a"});
  table.map(1, kHuge + 4096, kHuge, 4096, {"/bin/b"});
  table.map(1, kHuge, kHuge, 0, {"//anon"});
  BOOST_TEST(at(table, 1, kHuge) == "//anon+0");
  table.map(1, 4 * kHuge, kHuge, 0, {"/bin/a"});
  table.map(1, 5 * kHuge, kHuge, kHuge + 4096, {"/bin/a"});  // another distance
  table.map(1, 4 * kHuge, 2 * kHuge, 0, {"//anon"});
  BOOST_TEST(at(table, 1, 4 * kHuge) == "//anon+0");
}

BOOST_AUTO_TEST_CASE(code_that_is_known_to_be_no_moved_text_is_none) {
  ProcessTable table;
  table.map(1, 0, 3 * kHuge, 0, {"/bin/file"});
  table.map(1, kHuge, kHuge, 0, {std::string(pe::stream::kNoMovedText)});
  BOOST_TEST(at(table, 1, kHuge) == "[anon]+0");
  table.map(1, 2 * kHuge, kHuge, 2 * kHuge, {"/bin/file"});
  BOOST_TEST(at(table, 1, kHuge) == "[anon]+0");
}

BOOST_AUTO_TEST_CASE(a_hole_between_mappings_of_one_file_is_filled_when_the_second_is_known) {
  ProcessTable table;
  table.map(1, 1000, 100, 500, {"/bin/file"});
  table.map(1, 1100, 50, 0, {"//anon"});
  table.map(1, 1150, 50, 0, {"[anon:huge]"});
  BOOST_TEST(at(table, 1, 1100) == "//anon+0");
  table.map(1, 1200, 100, 700, {"/bin/file"});
  BOOST_TEST(at(table, 1, 1100) == "/bin/file+600");
  BOOST_TEST(at(table, 1, 1199) == "/bin/file+699");
  BOOST_TEST(at(table, 1, 1200) == "/bin/file+700");
}

BOOST_AUTO_TEST_CASE(a_hole_is_not_filled_between_other_places_or_files) {
  ProcessTable table;
  table.map(1, 1000, 100, 500, {"/bin/file"});
  table.map(1, 1100, 100, 0, {"//anon"});
  table.map(1, 1200, 100, 800, {"/bin/file"});
  BOOST_TEST(at(table, 1, 1100) == "//anon+0");
  table.map(1, 1200, 100, 700, {"/bin/other"});
  BOOST_TEST(at(table, 1, 1100) == "//anon+0");
  table.map(1, 1300, 100, 900, {"/bin/file"});
  BOOST_TEST(at(table, 1, 1100) == "//anon+0");
}

BOOST_AUTO_TEST_CASE(a_hole_with_a_gap_is_not_filled) {
  ProcessTable table;
  table.map(1, 1000, 100, 500, {"/bin/file"});
  table.map(1, 1110, 90, 0, {"//anon"});
  table.map(1, 1200, 100, 700, {"/bin/file"});
  BOOST_TEST(at(table, 1, 1110) == "//anon+0");
}

BOOST_AUTO_TEST_CASE(a_forked_process_has_its_parents_mappings_until_one_of_them_changes) {
  ProcessTable table;
  table.map(1, 1000, 100, 0, {"shared"});
  table.fork(1, 1, 2, 2);
  table.map(2, 1000, 100, 0, {"child"});
  BOOST_TEST(at(table, 1, 1000) == "shared+0");
  BOOST_TEST(at(table, 2, 1000) == "child+0");
  table.fork(1, 1, 3, 3);
  table.map(1, 2000, 100, 0, {"later"});
  BOOST_TEST(at(table, 3, 2000) == "");
}

BOOST_AUTO_TEST_CASE(exec_ends_the_old_mappings) {
  ProcessTable table;
  table.map(1, 1000, 100, 0, {"old"});
  table.exec(1);
  BOOST_TEST(at(table, 1, 1000) == "");
}

BOOST_AUTO_TEST_CASE(a_number_used_again_does_not_inherit_from_the_dead) {
  ProcessTable table;
  table.map(5, 1000, 100, 0, {"dead"});
  table.fork(9, 9, 5, 5);  // the parent is unknown
  BOOST_TEST(at(table, 5, 1000) == "");
}

BOOST_AUTO_TEST_CASE(a_thread_is_called_as_its_maker_until_renamed) {
  ProcessTable table;
  table.set_comm(1, 1, "main");
  table.fork(1, 1, 1, 2);
  BOOST_TEST(table.comm(1, 2) == "main");
  table.set_comm(1, 2, "worker");
  BOOST_TEST(table.comm(1, 2) == "worker");
  BOOST_TEST(table.comm(1, 1) == "main");
  BOOST_TEST(table.comm(1, 77) == "main");  // an unknown thread has its process's name
  BOOST_TEST(table.comm(9, 9) == ":9");
  BOOST_TEST(table.comm(0, 0) == "swapper");
  constexpr auto kEnded = static_cast<std::uint32_t>(-1);  // before its sample was recorded
  BOOST_TEST(table.comm(kEnded, kEnded) == ":-1");
}

BOOST_AUTO_TEST_CASE(a_mapping_that_would_wrap_around_is_ignored) {
  ProcessTable table;
  table.map(1, UINT64_MAX - 10, 100, 0, {"x"});
  table.map(1, 1000, 0, 0, {"x"});
  BOOST_TEST(at(table, 1, UINT64_MAX - 5) == "");
}

BOOST_AUTO_TEST_CASE(of_mappings_without_end_the_newest_stay, *pe::tests::costly()) {
  ProcessTable table;
  std::uint64_t start = std::uint64_t{1} << 40;
  constexpr std::uint64_t kCount = 3 * pe::stream::AddressSpace::kMaxMappings;
  for (std::uint64_t i = 0; i < kCount; ++i)
    table.map(1, start -= 8192, 4096, 0, {"churn"});
  BOOST_TEST(table.space(1)->all().size() <= pe::stream::AddressSpace::kMaxMappings);
  BOOST_TEST(table.find(1, start) != nullptr);
  BOOST_TEST(table.find(1, start + 8192 * (pe::stream::AddressSpace::kMaxMappings / 2 - 1)) !=
             nullptr);
  BOOST_TEST(table.find(1, start + 8192 * (kCount - 1)) == nullptr);
}

BOOST_AUTO_TEST_CASE(only_a_jitdumps_name_is_one) {
  using pe::stream::is_jit_dump_name;
  BOOST_TEST(is_jit_dump_name("/home/u/.debug/jit/llvm-IR-jit-x/jit-12.dump"));
  for (const char* name : {"jit-12.dump", "/jit-.dump", "/jit-12a.dump", "/jit-12.dump (deleted)",
                           "/xjit-12.dump", "/jit-.dum", "//anon", ""})
    BOOST_TEST(!is_jit_dump_name(name), name);
}

BOOST_AUTO_TEST_SUITE_END()
