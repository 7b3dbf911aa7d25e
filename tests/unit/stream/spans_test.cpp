// Spans: entries and returns of functions become calls, whatever a program does.
// SPDX-License-Identifier: MIT
#include "stream/spans.h"

#include <boost/test/unit_test.hpp>
#include <span>
#include <string>
#include <vector>

#include "stream/user_copy.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"

using pe::stream::Span;
using pe::stream::SpanCounts;
using pe::stream::SpanEnd;
using pe::stream::Spans;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(spans)

namespace {

/// The calls of a stream: "f 1 10-20 returned", with the function and the thread.
struct Read {
  std::vector<std::string> spans;
  SpanCounts counts;  ///< of the first function
};

const char* name_of(SpanEnd end) {
  switch (end) {
    case SpanEnd::kReturned:
      return "returned";
    case SpanEnd::kEndedWithThread:
      return "thread";
    case SpanEnd::kOpen:
      return "open";
    case SpanEnd::kLost:
      return "lost";
    case SpanEnd::kLeft:
      break;
  }
  return "left";
}

Read read(StreamBuilder stream) {
  auto input = pe::testing::memory_input(stream.round().text());
  pe::stream::Session session(input);
  Read read;
  Spans* all = nullptr;
  Spans spans([&](const Span& span, SpanEnd end) {
    read.spans.push_back(all->functions()[span.function] + " " + std::to_string(span.tid) + " " +
                         std::to_string(span.begin_ns) + "-" + std::to_string(span.end_ns) + " " +
                         name_of(end));
  });
  all = &spans;
  while (const auto record = session.next())
    (void)spans.follow(*record, session);
  spans.finish();
  if (!spans.functions().empty())
    read.counts = spans.counts(0);
  return read;
}

StreamBuilder calls() {
  StreamBuilder stream;
  stream.event().calls_of("f");
  return stream;
}

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(an_entry_and_a_return_are_a_call) {
  const Read r = read(calls().enter({.time_ns = 10}).leave({.time_ns = 20}));
  BOOST_TEST(r.spans == Texts{"f 1 10-20 returned"}, boost::test_tools::per_element());
  BOOST_TEST(r.counts.calls == 1);
}

BOOST_AUTO_TEST_CASE(threads_have_their_own_calls) {
  const Read r = read(calls()
                          .enter({.time_ns = 10, .tid = 1})
                          .enter({.time_ns = 11, .tid = 2})
                          .leave({.time_ns = 20, .tid = 1})
                          .leave({.time_ns = 30, .tid = 2}));
  BOOST_TEST(r.spans == (Texts{"f 1 10-20 returned", "f 2 11-30 returned"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(recursive_calls_are_one_call) {
  const Read r = read(calls()
                          .enter({.time_ns = 10, .stack_pointer = 0x1000})
                          .enter({.time_ns = 11, .stack_pointer = 0xff8})
                          .enter({.time_ns = 12, .stack_pointer = 0xff0})
                          .leave({.time_ns = 13, .stack_pointer = 0xff0})
                          .leave({.time_ns = 14, .stack_pointer = 0xff8})
                          .leave({.time_ns = 15, .stack_pointer = 0x1000}));
  BOOST_TEST(r.spans == Texts{"f 1 10-15 returned"}, boost::test_tools::per_element());
  BOOST_TEST(r.counts.nested == 2);
}

BOOST_AUTO_TEST_CASE(longjmp_leaves_calls) {  // found when the thread is above them
  const Read r = read(calls()
                          .enter({.time_ns = 10, .stack_pointer = 0xf00})
                          .enter({.time_ns = 20, .stack_pointer = 0x1000})
                          .leave({.time_ns = 30, .stack_pointer = 0x1000}));
  BOOST_TEST(r.spans == (Texts{"f 1 10-20 left", "f 1 20-30 returned"}),
             boost::test_tools::per_element());
  BOOST_TEST(r.counts.left == 1);
  BOOST_TEST(r.counts.nested == 0);
}

BOOST_AUTO_TEST_CASE(a_call_at_the_place_of_one_that_was_left) {  // an exception in a loop
  const Read r = read(calls().enter({.time_ns = 10}).enter({.time_ns = 20}).leave({.time_ns = 30}));
  BOOST_TEST(r.spans == (Texts{"f 1 10-20 left", "f 1 20-30 returned"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_nested_call_that_was_left_ends_nothing) {
  const Read r = read(calls()
                          .enter({.time_ns = 10, .stack_pointer = 0x1000})
                          .enter({.time_ns = 11, .stack_pointer = 0xf00})
                          .leave({.time_ns = 15, .stack_pointer = 0x1000}));
  BOOST_TEST(r.spans == Texts{"f 1 10-15 returned"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_return_of_another_function_shows_that_a_call_was_left) {
  StreamBuilder stream = calls();
  stream.calls_of("g", 30)
      .enter({.time_ns = 5, .stack_pointer = 0x1000, .id = 30})
      .enter({.time_ns = 10, .stack_pointer = 0xf00})
      .leave({.time_ns = 15, .stack_pointer = 0x1000, .id = 30});
  BOOST_TEST(read(stream).spans == (Texts{"f 1 10-15 left", "g 1 5-15 returned"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(functions_call_each_other) {
  StreamBuilder stream = calls();
  stream.calls_of("g", 30)
      .enter({.time_ns = 10, .stack_pointer = 0x1000})
      .enter({.time_ns = 11, .stack_pointer = 0xf00, .id = 30})
      .enter({.time_ns = 12, .stack_pointer = 0xe00})
      .leave({.time_ns = 13, .stack_pointer = 0xe00})
      .leave({.time_ns = 14, .stack_pointer = 0xf00, .id = 30})
      .leave({.time_ns = 15, .stack_pointer = 0x1000});
  BOOST_TEST(read(stream).spans == (Texts{"g 1 11-14 returned", "f 1 10-15 returned"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_that_ends_ends_its_call) {
  const Read r = read(calls().enter({.time_ns = 10, .tid = 2}).exit(25, 1, 2));
  BOOST_TEST(r.spans == Texts{"f 2 10-25 thread"}, boost::test_tools::per_element());
  BOOST_TEST(r.counts.ended_with_thread == 1);
}

BOOST_AUTO_TEST_CASE(exec_ends_the_calls_of_a_process) {
  const Read r = read(calls()
                          .enter({.time_ns = 10})
                          .enter({.time_ns = 11, .pid = 3, .tid = 3})
                          .comm(25, 1, 1, "new", true)
                          .leave({.time_ns = 30, .pid = 3, .tid = 3}));
  BOOST_TEST(r.spans == (Texts{"f 1 10-25 thread", "f 3 11-30 returned"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_open_call_lasts_to_the_end_of_the_recording) {
  const Read r = read(calls().enter({.time_ns = 10}).sample({.time_ns = 50}));
  BOOST_TEST(r.spans == Texts{"f 1 10-50 open"}, boost::test_tools::per_element());
  BOOST_TEST(r.counts.open == 1);
}

BOOST_AUTO_TEST_CASE(a_return_without_an_entry_began_before) {
  const Read r = read(calls().leave({.time_ns = 10}));
  BOOST_TEST(r.spans.empty());
  BOOST_TEST(r.counts.began_before == 1);
}

BOOST_AUTO_TEST_CASE(a_call_is_unknown_if_records_are_lost) {  // its return may be among them
  const Read r = read(calls()
                          .enter({.time_ns = 10})
                          .lost(15, 3)
                          .leave({.time_ns = 20})
                          .enter({.time_ns = 30})
                          .leave({.time_ns = 40}));
  BOOST_TEST(r.spans == (Texts{"f 1 10-15 lost", "f 1 30-40 returned"}),
             boost::test_tools::per_element());
  BOOST_TEST(r.counts.lost == 1);
}

BOOST_AUTO_TEST_CASE(another_stack_does_not_leave_calls) {  // a handler's, far above
  const Read r = read(calls()
                          .enter({.time_ns = 10, .stack_pointer = 0x1000})
                          .enter({.time_ns = 11, .stack_pointer = 0x7fff'0000'0000})
                          .leave({.time_ns = 12, .stack_pointer = 0x7fff'0000'0000})
                          .leave({.time_ns = 15, .stack_pointer = 0x1000}));
  BOOST_TEST(r.spans == Texts{"f 1 10-15 returned"}, boost::test_tools::per_element());
  BOOST_TEST(r.counts.nested == 1);
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_is_limited) {
  Spans spans([](const Span& /*span*/, SpanEnd /*end*/) {});
  const auto function = spans.index_of("f").value();
  for (std::uint32_t tid = 0; tid < Spans::kMostThreads + 3; ++tid)
    spans.enter({.function = function, .pid = 1, .tid = tid, .time_ns = 1, .stack_pointer = 8});
  BOOST_TEST(spans.counts(function).calls == Spans::kMostThreads);
  BOOST_TEST(spans.counts(function).not_followed == 3);
}

BOOST_AUTO_TEST_CASE(the_number_of_functions_is_limited) {
  Spans spans([](const Span& /*span*/, SpanEnd /*end*/) {});
  for (std::size_t i = 0; i < Spans::kMostFunctions; ++i)
    BOOST_TEST(spans.index_of(std::to_string(i)).has_value());
  BOOST_TEST(!spans.index_of("another"));
  BOOST_TEST(spans.index_of("0").value() == 0);
}

BOOST_AUTO_TEST_CASE(a_mark_keeps_only_the_stack_pointer) {
  namespace stream = pe::stream;
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_REGS_USER;
  attr.sample_regs_user = stream::stack_pointer_mask() | 1U | 1U << 8U;
  stream::RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(std::uint64_t{20})
      .add(std::uint64_t{0x10})
      .add(std::uint32_t{3})
      .add(std::uint32_t{4})
      .add(std::uint64_t{99})
      .add(std::uint64_t{1})  // CPU
      .add(std::uint64_t{1})
      .add(std::uint64_t{0})  // frames
      .add(std::uint64_t{PERF_SAMPLE_REGS_ABI_64})
      .add(std::uint64_t{1})
      .add(std::uint64_t{0x7000})
      .add(std::uint64_t{3});
  const auto text = builder.finish();
  const auto record = stream::view_record(std::as_bytes(std::span(text)));
  const auto sample = stream::parse_sample(record, attr);
  BOOST_REQUIRE(sample.has_value());
  stream::RecordBuilder marks;
  const auto marked = stream::with_stack_pointer(record, *sample, attr.sample_regs_user, marks);
  const perf_event_attr small = stream::with_stack_pointer(attr);
  const auto mark =
      stream::parse_sample(stream::view_record(std::as_bytes(std::span(marked))), small);
  BOOST_REQUIRE(mark.has_value());
  BOOST_TEST(stream::user_stack_pointer(*mark, small.sample_regs_user).value_or(0) == 0x7000);
  BOOST_TEST(mark->tid == 4);
  BOOST_TEST(mark->time_ns == 99);
  BOOST_TEST(!mark->has_callchain);
  BOOST_TEST(marked.size() < text.size());
}

BOOST_AUTO_TEST_CASE(a_path_is_not_part_of_a_function) {
  using pe::stream::name_without_path;
  BOOST_TEST(name_without_path("main") == "main");
  BOOST_TEST(name_without_path("/usr/bin/prog:main") == "main");
  BOOST_TEST(name_without_path("./prog:ns::f(a::b)") == "ns::f(a::b)");
  BOOST_TEST(name_without_path("ns::f") == "ns::f");
}

BOOST_AUTO_TEST_SUITE_END()
