// SPDX-License-Identifier: MIT
#include "malloctrace/heap/heap.h"

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <limits>
#include <string_view>

#include "support/heap_builder.h"

namespace {

using namespace pe;
using pe::testing::HeapBuilder;
using pe::testing::HeapTotals;

heap::SharedFile shared(const HeapBuilder& builder) {
  auto checked = heap::SharedFile::check(builder.build());
  BOOST_REQUIRE(std::holds_alternative<heap::SharedFile>(checked));
  return std::move(std::get<heap::SharedFile>(checked));
}

heap::Heap read(const HeapBuilder& builder) {
  auto heap = heap::read_heap(shared(builder));
  BOOST_REQUIRE(heap.has_value());
  return std::move(*heap);
}

std::string refusal(Fd fd) {
  const auto checked = heap::SharedFile::check(std::move(fd));
  const auto* why = std::get_if<std::string>(&checked);
  return why != nullptr ? *why : "";
}

/// "3 2 1": the addresses of a site's stack, innermost first.
std::string stack_of(const heap::Heap& heap, std::uint32_t site) {
  heap::Heap::Stack stack;
  BOOST_TEST(heap.stack(heap.sites.at(site - 1), stack));
  std::string text;
  for (const heap::Frame& frame : stack.frames)
    text += (text.empty() ? "" : " ") + std::to_string(frame.avma);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(heap_reader)

BOOST_AUTO_TEST_CASE(a_newline_in_a_path_is_unescaped) {
  HeapBuilder builder;
  builder.module(0x1000, 0x2000, "/tmp/a\\012b\\012 (deleted)");
  const heap::Heap heap = read(builder);
  const heap::Module& module = heap.modules.at(0);
  BOOST_TEST(std::string_view(module.path, module.path_length) == "/tmp/a\nb\n (deleted)");
}

BOOST_AUTO_TEST_CASE(a_count_takes_no_more_memory_than_its_section_has) {
  HeapBuilder builder;
  builder.stacks().resize(1 << 22);  // 4 MiB in one section
  builder.header.codes = heap::kMaxCodes - 1;
  builder.header.modules = heap::kMaxModules;
  builder.header.wides = heap::kMaxWides - 1;
  const heap::Heap heap = read(builder);
  BOOST_TEST(heap.file_bytes >= std::size_t{1} << 22);
  BOOST_TEST(heap.codes.size() <= 4096 / sizeof(heap::Code) + 1);
  BOOST_TEST(heap.modules.size() <= 1U);
  BOOST_TEST(heap.damaged >= 3U);
}

BOOST_AUTO_TEST_CASE(a_peak_that_is_now_has_the_time_of_the_newest_allocation) {
  HeapBuilder builder;
  builder.header.tick = 70;
  builder.header.last_tick = 50;
  builder.header.peak_tick = 20;
  builder.header.peak_bytes = 10;
  builder.site_of({builder.code(1)}, {.live_bytes = 10});
  BOOST_TEST(read(builder).header.peak_tick == 20U);
  builder.site_of({builder.code(2)}, {.live_bytes = 1});
  BOOST_TEST(read(builder).header.peak_tick == 50U);
}

BOOST_AUTO_TEST_CASE(a_peak_of_samples_may_be_too_high) {
  heap::Heap heap;
  heap.peak_bytes = 6'000'000;
  BOOST_TEST(heap.peak_excess_bytes() == 0U);
  // 4,000,000 and four times a standard error of 500,000.
  heap.header.sample_bytes = 62'500;
  BOOST_TEST(heap.peak_excess_bytes() >= 1'999'990U);
  BOOST_TEST(heap.peak_excess_bytes() <= 2'000'010U);
  heap.header.sample_bytes = ~std::uint64_t{0};
  BOOST_TEST(heap.peak_excess_bytes() <= 6'000'000U);
}

BOOST_AUTO_TEST_CASE(only_sealed_memory_of_the_right_size_and_version_is_taken) {
  BOOST_TEST(refusal(HeapBuilder().build()) == "");
  BOOST_TEST(refusal(HeapBuilder().build(0)) ==
             "shared memory that is not sealed against shrinking");
  Fd small(::memfd_create("heap", MFD_CLOEXEC));
  BOOST_TEST(refusal(std::move(small)) == "no shared memory of the right size");
  HeapBuilder other;
  other.header.magic += 1;
  BOOST_TEST(refusal(other.build()) == "shared memory of another version");
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const Fd write_end(ends[1]);
  BOOST_TEST(refusal(Fd(ends[0])) == "no shared memory of the right size");
}

BOOST_AUTO_TEST_CASE(stacks_are_read_from_a_tree_with_branches) {
  HeapBuilder b;
  const auto main = b.code(10), f = b.code(20), g = b.code(30), h = b.code(40);
  const auto at_main = b.child(0, main);
  const auto at_f = b.child(at_main, f);
  const auto at_g = b.child(at_f, g);
  const auto in_g = b.site(at_g, {});
  const auto in_f = b.site(at_f, {});                 // a branch that is a site at once
  const auto in_h = b.site(b.child(at_main, h), {});  // a branch of two
  const auto other = b.site(b.child(0, h), {});       // another outermost frame
  const auto nowhere = b.site(0, {});                 // no frame at all
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.damaged == 0U);
  BOOST_TEST(stack_of(heap, in_g) == "30 20 10");
  BOOST_TEST(stack_of(heap, in_f) == "20 10");
  BOOST_TEST(stack_of(heap, in_h) == "40 10");
  BOOST_TEST(stack_of(heap, other) == "40");
  BOOST_TEST(stack_of(heap, nowhere) == "");
}

BOOST_AUTO_TEST_CASE(sums_of_threads_are_added) {
  HeapBuilder b;
  b.header.peak_version = 5;
  b.header.peak_bytes = 1000;
  // Changed since the peak, when 70 were held; and not changed since.
  const auto a = b.site(0, {.allocated_bytes = 100,
                            .allocated_count = 10,
                            .temporary_count = 3,
                            .live_bytes = 40,
                            .live_count = 4,
                            .peak_bytes = 70,
                            .version = 5,
                            .first_tick = 8,
                            .last_tick = 9});
  const auto c = b.site(0, {.allocated_bytes = 50,
                            .allocated_count = 1,
                            .live_bytes = 50,
                            .live_count = 1,
                            .peak_bytes = 7,
                            .version = 4,
                            .first_tick = 2,
                            .last_tick = 2});
  auto& thread = b.thread(0, 77);
  thread.sums[3] = HeapTotals{.allocated_bytes = 1,
                              .allocated_count = 1,
                              .temporary_count = 1,
                              .live_bytes = -10,
                              .live_count = -1,
                              .peak_bytes = 2,
                              .version = 5,
                              .first_tick = 20,
                              .last_tick = 21}
                       .of_thread(a);
  b.thread(200, 78).sums[0] = HeapTotals{.live_bytes = 5, .version = 4}.of_thread(a);
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.damaged == 0U);
  const heap::Sums& sums = heap.sites.at(a - 1).sums;
  BOOST_TEST(sums.allocated_bytes == 101U);
  BOOST_TEST(sums.allocated_count == 11U);
  BOOST_TEST(sums.temporary_count == 4U);
  BOOST_TEST(sums.live_bytes == 35U);
  BOOST_TEST(sums.live_count == 3U);
  BOOST_TEST(sums.peak_bytes == 77U);  // 70 + 2, and 5 that were held then already
  BOOST_TEST(sums.first_tick == 8U);
  BOOST_TEST(sums.last_tick == 21U);
  BOOST_TEST(heap.sites.at(c - 1).sums.peak_bytes == 50U);
  BOOST_TEST(heap.peak_bytes == 1000U);
  BOOST_TEST(heap.total().live_bytes == 85U);
}

BOOST_AUTO_TEST_CASE(sums_of_a_thread_count_though_most_of_them_were_never_written) {
  HeapBuilder b;
  const auto site = b.site(0, {});
  const Fd fd = b.build();
  const heap::ThreadSum sum = HeapTotals{.allocated_bytes = 5}.of_thread(site);
  const auto at = heap::kThreadsAt + offsetof(heap::ThreadSums, sums);
  BOOST_REQUIRE(::pwrite(fd.get(), &sum, sizeof sum, static_cast<off_t>(at)) == sizeof sum);
  const std::uint32_t threads = 1;
  BOOST_REQUIRE(::pwrite(fd.get(), &threads, sizeof threads, offsetof(heap::Header, threads)) ==
                sizeof threads);
  auto checked = heap::SharedFile::check(Fd(::dup(fd.get())));
  const auto heap = heap::read_heap(std::get<heap::SharedFile>(checked));
  BOOST_TEST(heap.value().total().allocated_bytes == 5U);
}

BOOST_AUTO_TEST_CASE(now_is_the_peak_where_threads_have_not_told_of_it) {
  HeapBuilder b;
  b.header.peak_version = 5;
  b.header.peak_bytes = 30;
  b.site(0, {.live_bytes = 40, .peak_bytes = 10, .version = 5});
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.peak_bytes == 40U);
  BOOST_TEST(heap.sites.at(0).sums.peak_bytes == 40U);
}

BOOST_AUTO_TEST_CASE(numbers_that_have_grown_stand_elsewhere) {
  HeapBuilder b;
  constexpr std::uint64_t kMany = 1ULL << 40;
  b.header.peak_version = 33;
  b.header.peak_bytes = 2 * kMany;
  const auto wide = b.wide({.allocated_bytes = kMany,
                            .allocated_count = kMany,
                            .temporary_count = 2,
                            .live_bytes = 7,
                            .live_count = 1,
                            .peak_bytes = 9,
                            .version = 33,
                            .first_tick = 1,
                            .last_tick = 2});
  b.site(0, {.wide = wide});
  b.site(0, {.live_bytes = 3, .peak_bytes = 4, .version = 33});
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.sites.at(0).sums.allocated_bytes == kMany);
  BOOST_TEST(heap.sites.at(0).sums.peak_bytes == 9U);
  BOOST_TEST(heap.sites.at(1).sums.peak_bytes == 4U);
}

BOOST_AUTO_TEST_CASE(estimated_counts_are_rounded) {
  HeapBuilder b;
  b.header.sample_bytes = 512 << 10;
  b.site(0, {.allocated_count = 5 * heap::kCountUnit + 128});
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.whole(heap.sites.at(0).sums.allocated_count) == 6U);
  BOOST_TEST(heap.whole(127) == 0U);
  b.header.sample_bytes = 0;
  BOOST_TEST(read(b).whole(127) == 127U);
}

BOOST_AUTO_TEST_CASE(counts_beyond_what_is_there_allocate_nothing) {
  HeapBuilder b;
  b.site_of({b.code(10)}, {.allocated_bytes = 1, .allocated_count = 1});
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  b.header.modules = b.header.codes = b.header.stack_bytes = kMost;
  b.header.sites = b.header.wides = b.header.threads = kMost;
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.damaged >= 6U);
  const std::uint64_t held =
      heap.modules.size() * sizeof(heap::Module) + heap.codes.size() * sizeof(heap::Code) +
      heap.stacks.words.size() * sizeof(std::uint32_t) + heap.sites.size() * sizeof(heap::Site);
  BOOST_TEST(held <= 8 * heap.file_bytes);
  BOOST_TEST(stack_of(heap, 1) == "10");
}

BOOST_AUTO_TEST_CASE(each_thread_has_a_stack_of_its_own_in_the_list) {
  HeapBuilder b;
  b.site_of({b.code(10), b.code(20), b.code(30)}, {});
  const auto second = b.site(0, {}), third = b.site(0, {}), fourth = b.site(0, {});
  b.stacks().resize(b.stacks().size() - 3 * 2);           // the three of no frames
  for (const int byte : {1,    5,    2,    0,    1,   2,  // slot 5 adds the stack 10 20
                         3,    0,    2,    0,    2,   3,  // slot 0 drops one and adds 20 30
                         0xff, 0xff, 0xff, 0xff, 0xf, 5,  // slot 5 drops all of its frames
                         3,    7})                        // and adds three expected ones
    b.stacks().push_back(static_cast<std::uint8_t>(byte));
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.damaged == 0U);
  BOOST_TEST(stack_of(heap, second) == "20 10");
  BOOST_TEST(stack_of(heap, third) == "30 20 20 10");
  BOOST_TEST(stack_of(heap, fourth) == "30 20 10");
}

BOOST_AUTO_TEST_CASE(a_list_of_stacks_is_read_up_to_its_first_contradiction) {
  const std::vector<std::vector<std::uint8_t>> hostile{
      {},                                    // nothing at all
      {0x80, 0x80, 0x80, 0x80, 0x80, 0, 0},  // a number that does not end
      {0xff, 0xff, 0xff, 0xff, 0x7f, 0},     // more than 32 bits
      {0, 9, 1},                             // bits that are cut
      {0, 1, 0},                             // a code that is cut
      {0, 1, 0, 0},                          // code 0
      {0, 1, 0, 3},                          // a code that is not there
      {0, 1, 1},                             // nothing is expected inside of it
      {1, 0x80, 0x80, 2, 1, 0, 1},           // a slot that no thread has
  };
  for (const auto& bytes : hostile) {
    HeapBuilder b;
    const auto good = b.site_of({b.code(10), b.code(20)}, {.allocated_bytes = 3});
    const auto bad = b.site(0, {.allocated_bytes = 4});
    const auto later = b.site(0, {.allocated_bytes = 5});
    b.stacks().resize(b.stacks().size() - 2 * 2);
    b.stacks().insert(b.stacks().end(), bytes.begin(), bytes.end());
    const heap::Heap heap = read(b);
    BOOST_TEST(heap.damaged >= 1U);
    BOOST_TEST(stack_of(heap, good) == "20 10");
    BOOST_TEST(heap.total().allocated_bytes >= 3U);
    if (heap.sites.size() >= later)
      BOOST_TEST(stack_of(heap, bad) + stack_of(heap, later) == "");
  }
}

BOOST_AUTO_TEST_CASE(hostile_numbers_are_counted_and_limited) {
  HeapBuilder b;
  b.module(100, 50, "backwards");
  b.code(1, 9);  // of a module that is not there
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kMostSigned = std::numeric_limits<std::int64_t>::max();
  const auto wide = b.wide({.allocated_bytes = kMost, .live_bytes = kMostSigned});
  const auto site = b.site(0, {.wide = wide});
  b.site(0, {.wide = 9999});
  b.site(0, {.live_bytes = -5});
  auto& thread = b.thread(0, 1);
  thread.sums[0] = HeapTotals{.allocated_bytes = 5, .live_bytes = 5}.of_thread(site);
  thread.sums[1].site = 12345;
  std::memset(b.header.command, 'x', sizeof b.header.command);
  const heap::Heap heap = read(b);
  BOOST_TEST(heap.damaged == 4U);
  BOOST_TEST(heap.modules.at(0).end == 100U);
  BOOST_TEST(heap.codes.at(0).module == 0U);
  BOOST_TEST(heap.sites.at(0).sums.allocated_bytes == kMost);
  BOOST_TEST(heap.sites.at(0).sums.live_bytes == static_cast<std::uint64_t>(kMostSigned));
  BOOST_TEST(heap.sites.at(2).sums.live_bytes == 0U);
  BOOST_TEST(std::string(heap.header.command) == std::string(15, 'x'));
}

BOOST_AUTO_TEST_CASE(stacks_that_no_record_could_hold_are_cut) {
  HeapBuilder b;
  const auto inner = b.code(10);
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < heap::Heap::kMaxFrames + 1; ++i)
    node = b.child(node, inner);
  const auto site = b.site(node, {});
  const heap::Heap heap = read(b);
  heap::Heap::Stack stack;
  BOOST_TEST(!heap.stack(heap.sites.at(site - 1), stack));
  BOOST_TEST(stack.frames.size() == heap::Heap::kMaxFrames);
}

BOOST_AUTO_TEST_CASE(frames_of_an_interpreter_are_apart) {
  HeapBuilder b;
  const auto outer = b.script({.code = 0x100, .ends_call = true}, std::vector<std::byte>(16));
  const auto inner = b.script({.code = 0x200}, std::vector<std::byte>(8));
  const auto site = b.site_of({outer, inner, b.code(1), b.code(2)}, {});
  const heap::Heap heap = read(b);
  heap::Heap::Stack stack;
  BOOST_TEST(heap.stack(heap.sites.at(site - 1), stack));
  BOOST_TEST(stack.scripts == (std::vector<std::uint32_t>{1, 0}), boost::test_tools::per_element());
  BOOST_TEST(stack_of(heap, site) == "2 1");
  BOOST_TEST(heap.scripts.at(1).code == 0x200U);
  BOOST_TEST(heap.scripts.at(1).copies == 16U);
  BOOST_TEST(heap.damaged == 0U);
}

BOOST_AUTO_TEST_CASE(frames_of_an_interpreter_that_do_not_exist_are_damaged) {
  HeapBuilder b;
  const auto none = b.code(7, heap::kScriptModule);
  const auto long_copies = b.script({.code = 0x100}, std::vector<std::byte>(8), 1000);
  const auto site = b.site_of({none, long_copies}, {});
  const heap::Heap heap = read(b);
  heap::Heap::Stack stack;
  BOOST_TEST(heap.stack(heap.sites.at(site - 1), stack));
  BOOST_TEST(stack.scripts.size() == 1U);
  BOOST_TEST(stack.frames.size() == 1U);
  BOOST_TEST(heap.scripts.at(0).copied_bytes == 0U);
  BOOST_TEST(heap.damaged == 2U);
}

BOOST_AUTO_TEST_CASE(the_process_is_told_the_time) {
  const auto file = shared(HeapBuilder());
  file.set_tick(12, 100);
  BOOST_TEST(file.header()->tick == 12U);
  BOOST_TEST(file.header()->tick_ms == 100U);
}

BOOST_AUTO_TEST_SUITE_END()
