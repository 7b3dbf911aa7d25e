// SPDX-License-Identifier: MIT
#include "malloctrace/report.h"

#include <boost/test/unit_test.hpp>
#include <string_view>

#include "support/heap_builder.h"

namespace {

using namespace pe;
using malloctrace::Report;
using pe::testing::HeapBuilder;

void add(Report& report, const HeapBuilder& builder, pid_t pid, bool is_running = false,
         std::uint32_t began_tick = 0) {
  auto checked = heap::SharedFile::check(builder.build());
  const heap::Heap heap = heap::read_heap(std::get<heap::SharedFile>(checked)).value();
  using malloctrace::Fate;
  report.add({pid, is_running ? Fate::kRuns : Fate::kEnded, heap, began_tick});
}

/// 5 s after the beginning; what was allocated 4 s ago, and what is still growing.
HeapBuilder two_leaks() {
  HeapBuilder b;
  b.header.tick = 50;
  b.header.peak_bytes = 3000;
  b.header.peak_tick = 35;
  const auto a = b.module(0x1000, 0x9000, "/nowhere/a");
  b.site_of({b.code(0x1010, a), b.code(0x2010, a)}, {.allocated_bytes = 1234567,
                                                     .allocated_count = 4,
                                                     .temporary_count = 1,
                                                     .live_bytes = 2000,
                                                     .live_count = 2,
                                                     .first_tick = 1,
                                                     .last_tick = 10});
  b.site_of({b.code(0x3010, a)}, {.allocated_bytes = 1000,
                                  .allocated_count = 10,
                                  .live_bytes = 500,
                                  .live_count = 5,
                                  .first_tick = 5,
                                  .last_tick = 48});
  return b;
}

std::string text_of_report(const malloctrace::ReportChoice& choice) {
  Report report(choice);
  add(report, two_leaks(), 4000000);
  return report.text();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view table_of(std::string_view text, std::string_view title) {
  const auto begin = text.find(title);
  return begin == std::string_view::npos ? "" : text.substr(begin);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(heap_report)

BOOST_AUTO_TEST_CASE(totals_come_first) {
  const std::string text = text_of_report({.top = 10, .leak_age_ns = std::nullopt});
  BOOST_TEST(text.substr(0, text.find("\n\n")) ==
             "allocated  1,235,567 bytes in 14 allocations\n"
             "peak       3,000 bytes, 3.5 s after the start\n"
             "not freed  2,500 bytes in 7 blocks\n"
             "temporary  1 allocation, 7.1 %");
}

BOOST_AUTO_TEST_CASE(what_was_resident_and_mapped_is_told) {
  HeapBuilder heap = two_leaks();
  heap.header.resident_peak_bytes = 12000;
  heap.header.mapped_bytes = 8192;
  heap.header.mapped_count = 2;
  heap.header.mapped_peak_bytes = 4096;
  heap.header.mapped_top_bytes = 8000;
  heap.header.mapped_top_site = 2;
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  add(report, heap, 4000000);
  const std::string text = report.text();
  BOOST_TEST(contains(
      text,
      "resident   at most 12,000 bytes; malloc's peak is 25.0 % of it\nmapped     8,192 bytes in 2 "
      "mappings outside malloc, at most 4,096 bytes at once; 8,000 of them by a+0x200f  [a]\n"));
  heap.header.mapped_top_site = 4'000'000;  // a process may say anything
  Report odd({.top = 10, .leak_age_ns = std::nullopt});
  add(odd, heap, 4000000);
  BOOST_TEST(contains(odd.text(), "at most 4,096 bytes at once\n"));
}

BOOST_AUTO_TEST_CASE(sites_are_sorted_by_what_the_table_is_about) {
  const std::string text = text_of_report({.top = 1, .leak_age_ns = std::nullopt});
  BOOST_TEST(contains(table_of(text, "Most bytes allocated"),
                      "   1  99.9 %  1,234,567 bytes in 4 allocations\n"
                      "        a+0x100f  [a]\n"));
  BOOST_TEST(contains(table_of(text, "Most allocations"),
                      "   1  71.4 %  1,000 bytes in 10 allocations\n"));
  BOOST_TEST(!contains(text, "   2  "));
}

BOOST_AUTO_TEST_CASE(a_leak_tells_since_when_and_until_when_its_site_allocated) {
  const std::string text = text_of_report({.top = 10, .leak_age_ns = std::nullopt});
  const auto leaks = table_of(text, "Not freed\n");
  BOOST_TEST(contains(
      leaks,
      "1  80.0 %  2,000 bytes in 2 blocks; first allocated 4.9 s, last 4.0 s before the end"));
  BOOST_TEST(contains(
      leaks, "2  20.0 %  500 bytes in 5 blocks; first allocated 4.5 s, last 0.2 s before the end"));
  BOOST_TEST(!contains(leaks, "not shown"));
}

BOOST_AUTO_TEST_CASE(nothing_is_older_than_its_process) {
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  add(report, two_leaks(), 4000000, false, 30);
  BOOST_TEST(contains(report.text(), "2,000 bytes in 2 blocks; first allocated 2.0 s, last 2.0 s"));
}

BOOST_AUTO_TEST_CASE(leak_age_leaves_out_what_does_not_grow_any_more_and_says_so) {
  const std::string text = text_of_report({.top = 10, .leak_age_ns = 1'000'000'000});
  const auto leaks = table_of(text, "Not freed\n");
  BOOST_TEST(!contains(leaks, "2,000 bytes in"));
  BOOST_TEST(contains(leaks, "500 bytes in 5 blocks"));
  BOOST_TEST(
      contains(leaks, "not shown: 2,000 bytes of 1 site that allocated nothing in the last 1.0 s"));
}

BOOST_AUTO_TEST_CASE(equal_stacks_of_equal_commands_are_one_site) {
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  add(report, two_leaks(), 4000000);
  add(report, two_leaks(), 4000001, true);
  HeapBuilder other = two_leaks();
  other.set_command("other");
  add(report, other, 4000002);
  const std::string text = report.text();
  const auto leaks = table_of(text, "Not freed\n");
  BOOST_TEST(contains(leaks, "4,000 bytes in 4 blocks"));
  BOOST_TEST(contains(leaks, "        (prog)\n"));
  BOOST_TEST(contains(leaks, "        (other)\n"));
  BOOST_TEST(contains(text, " 4000001 prog "));
  BOOST_TEST(contains(text, "  runs\n"));
}

BOOST_AUTO_TEST_CASE(a_snapshot_tells_what_is_held_now) {
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  add(report, two_leaks(), 4000000, true);
  BOOST_TEST(contains(report.text(), "held now   2,500 bytes in 7 blocks\n"));
  BOOST_TEST(contains(report.text(), "\nHeld now\n"));
}

BOOST_AUTO_TEST_CASE(estimates_say_that_they_are) {
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  HeapBuilder sampled = two_leaks();
  sampled.header.sample_bytes = 524288;
  add(report, sampled, 4000000);
  BOOST_TEST(contains(report.text(), "sampled    one allocation per 524,288 bytes on average"));
}

BOOST_AUTO_TEST_CASE(a_program_without_a_heap_has_a_report_too) {
  Report report({.top = 10, .leak_age_ns = std::nullopt});
  BOOST_TEST(contains(report.text(), "allocated  0 bytes in 0 allocations"));
}

BOOST_AUTO_TEST_SUITE_END()
