// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "stackfold/formats/pprof/pprof_raw.h"
#include "stackfold/formats/readers.h"
#include "support/costly.h"
#include "support/stackfold.h"

using pe::fold::backtrace::function_of;
using pe::testing::Result;

using pe::testing::folded;
using pe::testing::stackfold;

BOOST_AUTO_TEST_SUITE(text_formats)

namespace {

/// One stack in each text format: the text before its frames, the line of a frame, the text after.
struct Shape {
  const char* format;
  std::string before, frame, after;
};

const Shape kShapes[] = {
    {"bpftrace", "@[\n", "    f\n", "]: 7\n"},
    {"bcc", "", "    f\n", "    -                prog (12)\n        7\n"},
    {"dtrace", "\n", "    f\n", "    7\n"},
    {"eu-stack", "TID 1:\n#0  0x01 f\n", "#1  0x01 f\n", "TID 2:\n#0  0x01 f\n"},
    {"gdb", "Thread 1 (process 3):\n#0  f ()\n", "#1  f ()\n", "\n"},
    {"jstack", "\"t-1\" #1 nid=0x1\n   java.lang.Thread.State: RUNNABLE\n", "\tat f(F.java:1)\n",
     "\n"},
    {"macos-sample", "Call graph:\n", "    7 f  (in x) + 1  [0x1]\n", "\n"},
    {"memleak",
     "[1] Top 1 stacks with outstanding allocations:\n\t8 bytes in 1 allocations from stack\n",
     "\t\tf+0x1 [x]\n", "\n"},
    {"simpleperf", "sample:\n  event_type: e\n  event_count: 7\n  thread_name: t\n",
     "    symbol: f\n", "sample:\n  event_type: e\n  event_count: 7\n"},
    {"pprof-raw", "Samples:\na/count\n  7: 1\nLocations\n     1: 0x1 M=1 f /f.go:1 s=0\n",
     "          f /f.go:1 s=0\n", "Mappings\n"},
};

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

std::uint64_t first_number(std::string_view out) {
  return std::stoull(std::string(out.substr(out.rfind(' '))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(lines_of_digits_by_chance_are_no_counts_of_stacks) {
  const std::string numbers = "    PID\n      1\n      2\n     17\n";
  const std::string addresses =
      "cpp \n\t    7f8e827c38a8\n\t    20574\n\t    822a\n\n"
      "cpp \n\t    104ce\n\t    80575\n\n"
      "cpp \n\t    20b74\n\t    822a\n\n";
  for (const std::string& text : {numbers, addresses}) {
    const Result result = stackfold({}, text);
    BOOST_TEST(result.status == 1);
    BOOST_TEST(result.out.empty());
    BOOST_TEST(result.err.find("unknown format") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(half_mangled_names_of_rust_are_demangled) {
  for (const Shape& shape : kShapes) {
    std::string frame = shape.frame;
    frame.replace(frame.find('f'), 1, "_$LT$u8$u20$as$u20$a..B$GT$::c::h0123456789abcdef");
    const auto r = stackfold({"--from", shape.format}, shape.before + frame + shape.after);
    BOOST_TEST(r.out.find("<u8 as a::B>::c") != std::string::npos, shape.format);
    BOOST_TEST(r.out.find("h0123") == std::string::npos, shape.format);
  }
  BOOST_TEST(
      folded("sh 1 [000] 1.0: cycles: \n\t1f a..b$LT$u8$GT$::h0123456789abcdef+0x1 (/x)\n") ==
      "sh;a::b<u8> 1\n");
}

BOOST_AUTO_TEST_CASE(a_very_deep_stack_is_folded, *pe::tests::costly()) {
  for (const Shape& shape : kShapes) {
    if (shape.format == std::string("macos-sample"))
      continue;  // in this format, the indentation shows the depth
    const auto r = stackfold({"--from", shape.format},
                             shape.before + repeated(shape.frame, 100'000) + shape.after);
    BOOST_TEST(r.status == 0, shape.format);
    BOOST_TEST(r.out.size() > 200'000, shape.format);
    BOOST_TEST(first_number(r.out) > 0, shape.format);
  }
}

BOOST_AUTO_TEST_CASE(a_very_long_line_is_stepped_over_or_folded, *pe::tests::costly()) {
  const std::string line(10'000'000, 'x');
  for (const Shape& shape : kShapes) {
    const auto r =
        stackfold({"--from", shape.format}, shape.before + shape.frame + shape.after + line + "\n");
    BOOST_TEST(r.status == 0, shape.format);
    BOOST_TEST(!r.out.empty(), shape.format);
  }
}

BOOST_AUTO_TEST_CASE(a_last_line_without_its_end_counts) {
  for (const Shape& shape : kShapes) {
    std::string input = shape.before + shape.frame + shape.after;
    const std::string whole = folded(input);
    input.pop_back();
    BOOST_TEST(folded(input) == whole, shape.format);
    BOOST_TEST(!whole.empty(), shape.format);
  }
}

BOOST_AUTO_TEST_CASE(nul_bytes_do_not_end_a_name) {
  for (const Shape& shape : kShapes) {
    std::string frame = shape.frame;
    const auto f = frame.find('f');
    frame.insert(f + 1, std::string("\0g", 2));
    const auto r =
        stackfold({"--from", shape.format}, shape.before + frame + shape.frame + shape.after);
    BOOST_TEST(r.status == 0, shape.format);
    BOOST_TEST(r.out.find("f?g") != std::string::npos, shape.format);
  }
}

BOOST_AUTO_TEST_CASE(a_frame_with_a_semicolon_stays_one) {
  for (const Shape& shape : kShapes) {
    std::string frame = shape.frame;
    frame.insert(frame.find('f') + 1, ";g");
    const auto r = stackfold({"--from", shape.format}, shape.before + frame + shape.after);
    BOOST_TEST(r.out.find("f:g") != std::string::npos, shape.format);
  }
}

BOOST_AUTO_TEST_CASE(every_format_has_a_name) {
  for (const Shape& shape : kShapes)
    BOOST_TEST(stackfold({"--from", shape.format}, "").status == 0, shape.format);
  BOOST_TEST(stackfold({"--from", "cobol"}, "").err ==
             "stackfold: --from: not one of stream, pprof, pprof-raw, speedscope, ghc-prof, vtune, "
             "visual-studio, "
             "xctrace, flamegraph, jstack, macos-sample, simpleperf, memleak, eu-stack, gdb, "
             "bpftrace, bcc, dtrace, "
             "perf-script, folded: "
             "'cobol' (see --help)\n");
}

BOOST_AUTO_TEST_CASE(garbage_is_an_error_and_names_its_place) {
  const auto r = stackfold({"--from", "bpftrace"}, "garbage\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: ignored 1 unknown line; first: stdin:1: 'garbage'\n");
}

BOOST_AUTO_TEST_CASE(an_input_without_a_stack_of_the_format_is_told) {
  for (const Shape& shape : kShapes) {
    const auto r = stackfold({"--from", shape.format}, "garbage\n");
    BOOST_TEST(r.status == 1, shape.format);
    BOOST_TEST(!r.err.empty(), shape.format);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bpftrace_text)

BOOST_AUTO_TEST_CASE(a_key_without_frames_is_its_labels) {
  BOOST_TEST(folded("@[\n    f\n, a]: 1\n@[, a]: 2\n@[]: 3\n") == "a 2\na;f 1\n");
}

BOOST_AUTO_TEST_CASE(a_thread_name_may_hold_brackets) {
  BOOST_TEST(folded("@[\n    f\n, a]: 1]: 5\n") == "a]: 1;f 5\n");
}

BOOST_AUTO_TEST_CASE(a_key_that_is_cut_off_is_said) {
  const auto r = stackfold({}, "@[\n    f\n]: 5\n@[\n    g\n");
  BOOST_TEST(r.out == "f 5\n");
  BOOST_TEST(r.err == "stackfold: ignored 1 unknown line; first: stdin:5: '@'\n");
}

BOOST_AUTO_TEST_CASE(a_sum_of_zero_is_no_sample) {
  BOOST_TEST(folded("@[\n    f\n]: 0\n@[\n    g\n]: 1\n") == "g 1\n");
}

BOOST_AUTO_TEST_CASE(the_kernel_goes_on_top_of_the_process) {
  const std::string user = "\n    read+1\n    main+2\n";
  const std::string kernel = "\n    vfs_read+1\n    entry_SYSCALL_64+2\n";
  BOOST_TEST(folded("@[" + kernel + ", " + user + "]: 1\n") ==
             "main;read;entry_SYSCALL_64;vfs_read 1\n");
  BOOST_TEST(folded("@[" + user + ", " + kernel + "]: 1\n") ==
             "main;read;entry_SYSCALL_64;vfs_read 1\n");
  BOOST_TEST(stackfold({"--kernel"}, "@[" + user + ", " + kernel + "]: 1\n").out ==
             "main;read;entry_SYSCALL_64_[k];vfs_read_[k] 1\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(block_text)

BOOST_AUTO_TEST_CASE(lines_at_the_margin_are_frames_if_a_count_follows) {
  BOOST_TEST(folded("a\nb\n5\n\nc\n  d\n  e\n6\n") == "b;a 5\ne;d 6\n");
}

BOOST_AUTO_TEST_CASE(a_stack_without_its_count_is_said) {
  const auto r = stackfold({}, "\n  a\n  b\n  5\n\n  c\n  d\n");
  BOOST_TEST(r.out == "b;a 5\n");
  BOOST_TEST(r.err == "stackfold: ignored 2 unknown lines; first: stdin:6: '  c'\n");
}

BOOST_AUTO_TEST_CASE(offsets_and_addresses_are_cut) {
  BOOST_TEST(folded("  ffffffff8137897c f+0x1f/0x20 \n  mod`g+31\n  operator+\n  1\n") ==
             "operator+;mod`g;f 1\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(backtrace_text)

BOOST_AUTO_TEST_CASE(a_function_is_found_among_arguments_and_place) {
  BOOST_TEST(function_of("0x00007f44 in usleep (useconds=<optimized out>) at usleep.c:31") ==
             "usleep");
  BOOST_TEST(function_of("main () at b (1).c:8") == "main");
  BOOST_TEST(function_of("std::function<void (int)>::operator()(int) const (this=0x1) at f.h:5") ==
             "std::function<void (int)>::operator()");
  BOOST_TEST(function_of("A::operator< (this=0x1) from /lib/x (y).so") == "A::operator<");
  BOOST_TEST(function_of("0x1 in (anonymous namespace)::f () from /x") ==
             "(anonymous namespace)::f");
  BOOST_TEST(function_of("f (text=0x1 \"a (b\" ...) at x.c:1") == "f");
  BOOST_TEST(function_of("<signal handler called>") == "<signal handler called>");
  BOOST_TEST(function_of("0x0000 in ?? ()") == "??");
}

BOOST_AUTO_TEST_CASE(eu_stack_frames_lose_marks_and_modules) {
  BOOST_TEST(function_of("0x0000558a204473df - 1 work::f(int) - /tmp/a - b") == "work::f(int)");
  BOOST_TEST(function_of("0x00007f4451316b09     __GI___pipe - /usr/lib/libc.so.6") ==
             "__GI___pipe");
  BOOST_TEST(function_of("0x00007f4451316b09 f - [vdso]") == "f");
  BOOST_TEST(function_of("0x00007f4451316b09") == "");
}

BOOST_AUTO_TEST_CASE(a_plain_backtrace_needs_no_thread) {
  BOOST_TEST(folded("#0  g () at a.c:1\n#1  main () at a.c:2\n#0  main () at a.c:2\n") ==
             "main 1\nmain;g 1\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(jstack_text)

BOOST_AUTO_TEST_CASE(a_running_thread_that_waits_in_native_code_waits) {
  const auto thread = [](const std::string& method) {
    return "\"t-1\" #1 nid=0x1\n   java.lang.Thread.State: RUNNABLE\n\tat " + method +
           "(Native Method)\n\tat a.Main.main(Main.java:3)\n\n";
  };
  const auto r = stackfold({}, thread("sun.nio.ch.EPoll.wait") + thread("a.B.work"));
  BOOST_TEST(r.out == "t;a.Main.main;a.B.work 1\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 1 sample read; 1 sample of other events left out (folded: "
             "RUNNABLE; others: stackfold --event NAME)\n");
}

BOOST_AUTO_TEST_CASE(stacks_repeated_at_a_deadlock_do_not_count) {
  BOOST_TEST(folded("\"a\" #1 nid=0x1\n   java.lang.Thread.State: RUNNABLE\n\tat f(F.java:1)\n\n"
                    "Found one Java-level deadlock:\n=============================\n\"a\":\n"
                    "  waiting to lock monitor 0x1 (object 0x2, a X),\n\n"
                    "Java stack information for the threads listed above:\n"
                    "===================================================\n\"a\":\n"
                    "\tat f(F.java:1)\n\nFound 1 deadlock.\n") == "a;f 1\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(macos_sample_text)

BOOST_AUTO_TEST_CASE(stacks_that_wait_are_left_out_if_asked) {
  const std::string text =
      "Call graph:\n"
      "    9 Thread_1\n"
      "    + 5 __ulock_wait  (in libsystem_kernel.dylib) + 8  [0x1]\n"
      "    + 3 read  (in libsystem_kernel.dylib) + 8  [0x2]\n"
      "    + 1 read  (in prog) + 8  [0x3]\n";
  const auto r = stackfold({"--running"}, text);
  BOOST_TEST(r.out == "Thread_1;prog`read 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: 8 samples of waiting threads left out\n");
  BOOST_TEST(folded(text).find("ulock_wait 5") != std::string::npos);
  BOOST_TEST(stackfold({"--running"}, "a;b 1\n").err ==
             "stackfold: stdin: --running: only for the text of macOS sample\n");
}

BOOST_AUTO_TEST_CASE(a_line_counts_what_its_children_do_not) {
  BOOST_TEST(folded("Call graph:\n    9 a\n    + 5 b\n    + ! 5 c\n    + 3 d\n    2 e\n") ==
             "a 1\na;b;c 5\na;d 3\ne 2\n");
}

BOOST_AUTO_TEST_CASE(children_that_have_more_than_their_parent_count) {
  BOOST_TEST(folded("Call graph:\n    2 a\n      3 b\n") == "a;b 3\n");
}

BOOST_AUTO_TEST_CASE(a_frame_has_its_module_in_front) {
  using pe::fold::macos_sample::frame_of;
  BOOST_TEST(frame_of("start  (in libdyld.dylib) + 2360  [0x18f1ff0e0]") == "libdyld`start");
  BOOST_TEST(frame_of("f(int)  (in a b) + 1,2,...  [0x1,0x2,...]  x.c:1") == "a b`f(int)");
  BOOST_TEST(frame_of("Thread_1   DispatchQueue_1: main  (serial)") ==
             "Thread_1 DispatchQueue_1: main (serial)");
}

BOOST_AUTO_TEST_CASE(lists_behind_the_graph_are_not_counted) {
  BOOST_TEST(folded("Call graph:\n    2 a\n\nSort by top of stack, same collapsed (when >= 5):\n"
                    "        a  (in x)        2\n") == "a 2\n");
}

BOOST_AUTO_TEST_CASE(a_garbage_line_in_a_call_graph_costs_no_samples) {
  const auto r =
      stackfold({}, "Call graph:\n    7 f  (in x) + 1  [0x1]\n!\n    5 g  (in x) + 1  [0x1]\n");
  BOOST_TEST(r.out == "x`f 7\nx`g 5\n");
  BOOST_TEST(r.err == "stackfold: ignored 1 unknown line; first: stdin:3: '!'\n");
}

BOOST_AUTO_TEST_SUITE_END()
