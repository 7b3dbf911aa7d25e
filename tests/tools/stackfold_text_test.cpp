// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include "stackfold/formats/perf_script/sample_line.h"
#include "stackfold/function_name.h"
#include "support/costly.h"
#include "support/stackfold.h"
#include "support/temp_dir.h"

using pe::fold::parse_perf_header;
using pe::testing::Result;

using pe::testing::folded;
using pe::testing::stackfold;

BOOST_AUTO_TEST_SUITE(perf_script_text)

namespace {

std::string folded_as_perl(std::string_view input) { return stackfold({"--compat"}, input).out; }

/// The fields of a header line, as "comm|pid|tid|event|period".
std::string header(std::string_view line, bool is_perl = false) {
  const auto parsed = parse_perf_header(line, is_perl);
  if (!parsed)
    return "";
  const auto event = parsed->event.value_or(pe::fold::PerfEventField{});
  return fmt::format("{}|{}|{}|{}|{}", parsed->comm, parsed->pid, parsed->tid, event.name,
                     event.period);
}

std::string name(std::string_view function) { return pe::fold::function_name(function); }

const std::string kHeader = "prog  12/34 [000] 1.0: 5 cycles: \n";

}  // namespace

BOOST_AUTO_TEST_CASE(headers_of_every_perf_are_read) {
  BOOST_TEST(header("ab 23927 [000] 184694.229089: cycles: ") == "ab||23927|cycles|0");
  BOOST_TEST(header("swapper     0/0     [012] 12.5:   10101010 cpu-clock:ppp: ") ==
             "swapper|0|0|cpu-clock:ppp|10101010");
  BOOST_TEST(header("noploop 5679 1.0: 1 cycles:u:") == "noploop||5679|cycles:u|1");
  BOOST_TEST(header("sh 1/1 [000] 5.1: sched:sched_switch: prev_comm=sh next_pid=2") ==
             "sh|1|1|sched:sched_switch|0");
}

BOOST_AUTO_TEST_CASE(names_with_blanks_and_digits_stay_whole) {
  BOOST_TEST(header("my 1 prog 12/34 [000] 1.0: 5 cycles: ") == "my 1 prog|12|34|cycles|5");
  BOOST_TEST(header("p 12/34 [000] 1.0: 5 cycles: ") == "p|12|34|cycles|5");
  BOOST_TEST(header("my 1 prog 12/34 [000] 1.0: 5 cycles: ", true) == "my||1|cycles|5");
  BOOST_TEST(header("p 12/34 [000] 1.0: 5 cycles: ", true) == "p 12/34 [000] 1.0:||5|cycles|5");
}

BOOST_AUTO_TEST_CASE(names_control_no_terminal_and_are_no_times) {
  BOOST_TEST(folded("p\xc2\x9bq 12/34 [000] 1.0: 5 cycles: \n\t1f a\xe2\x80\xae"
                    "b\x1b[2J\xc2\xa0\xc3\xa9\xff\x9b (/x)\n\n") ==
             "p?q;a?b?[2J\xc2\xa0\xc3\xa9\xff? 5\n");
  for (const std::string time : {"@12", "@12.300", "@0.000001"})
    BOOST_TEST(folded(time + " 12/34 [000] 1.0: 5 cycles: \n\t1f " + time + " (/x)\n\n") ==
               "_" + time + ";_" + time + " 5\n");
  BOOST_TEST(folded("@1.2 12/34 [000] 1.0: 5 cycles: \n\t1f @a (/x)\n\n") == "@1.2;@a 5\n");
}

BOOST_AUTO_TEST_CASE(stacks_are_weighed_by_period) {
  BOOST_TEST(folded(kHeader + "\t1f leaf+0x12 (/bin/x)\n\t2f main (/bin/x)\n\n" + kHeader +
                    "\t1f leaf+0x13 (/bin/x)\n\t2f main (/bin/x)\n\n") == "prog;main;leaf 10\n");
  BOOST_TEST(stackfold({"--weight", "samples"}, kHeader + "\t1f a (/x)\n\n").out == "prog;a 1\n");
}

BOOST_AUTO_TEST_CASE(a_sample_whose_period_does_not_fit_is_left_out_and_said) {
  const std::string large = "prog  12/34 [000] 1.0: 18446744073709551616 cycles: \n";
  const std::string text = kHeader + "\t1f a (/x)\n" + large + "\t1f b (/x)\n\n";
  const auto r = stackfold({}, text);
  BOOST_TEST(r.out == "prog;a 5\n");
  BOOST_TEST(r.err ==
             "stackfold: ignored 1 unknown line; first: stdin:3: 'prog  12/34 [000] 1.0: "
             "18446744073709551616 cycles: '\n");
  BOOST_TEST(stackfold({"--weight", "samples"}, text).out == "prog;a 1\nprog;b 1\n");
  BOOST_TEST(folded_as_perl(large + "\t1f b (/x)\n\n") == "prog;b 1.84467440737096e+19\n");
}

BOOST_AUTO_TEST_CASE(a_sample_without_a_call_chain_is_its_only_frame) {
  const std::string text =
      "              sh 32028  5792.038: 1003009 cpu-clock:      55ce2f4799e7 main+0x4 (/bin/sh)\n"
      "              cc 32029  5792.039: 1003010 cpu-clock:  ffffffff9b2012 "
      "[unknown] ([kernel.kallsyms])\n"
      "my sh 32030/32031 [002]  5792.040: 7 cpu-clock:  55ce2f4799e8 main+0x5 (/bin/sh)\n";
  const auto r = stackfold({}, text);
  BOOST_TEST(r.out == "cc;[kernel.kallsyms] 1003010\nmy_sh;main 7\nsh;main 1003009\n");
  BOOST_TEST(stackfold({"--tid", "--annotate", "--modules", "--time", "5792.040,"}, text).out ==
             "# unit: ns\nmy_sh-32030/32031;sh`main 7\n");
  BOOST_TEST(folded_as_perl(text) == "");
}

BOOST_AUTO_TEST_CASE(fields_of_a_tracepoint_are_no_frame) {
  BOOST_TEST(folded("sh 12 [000] 1.0: block:rq: 8,0 W 4096 () 12 + 8 [sh]\n"
                    "sh 12 [000] 1.0: block:rq: NR 1 (0x12, 3)\n") == "sh 2\n");
}

BOOST_AUTO_TEST_CASE(a_last_sample_without_a_blank_line_counts_but_not_for_the_perl) {
  BOOST_TEST(folded(kHeader + "\t1f a (/x)\n") == "prog;a 5\n");
  BOOST_TEST(folded_as_perl(kHeader + "\t1f a (/x)\n") == "");
}

BOOST_AUTO_TEST_CASE(to_the_perl_several_files_are_one_text) {
  const pe::testing::TempDir dir;
  const auto begin = dir.file("begin", kHeader + "\t1f a (/x)\n\t2f b (/x)");  // no newline
  const auto end = dir.file("end", "\t3f c (/x)\n\nprog 12 [000] 1.0: 2 faults: \n\t1f d (/x)\n\n");
  const auto blank = dir.file("blank", "\n");
  const auto both = stackfold({"--compat", begin, end}, "");
  BOOST_TEST(both.out == "prog;c;b;a 5\n");  // the first event of all files counts
  BOOST_TEST(both.err ==
             fmt::format("stackfold: {}: 1 sample read; 1 sample of other events left out "
                         "(folded: cycles; others: stackfold --event NAME)\n",
                         begin));
  BOOST_TEST(stackfold({"--compat", begin, blank}, "").out == "prog;b;a 5\n");
  BOOST_TEST(stackfold({begin, end}, "").out == "prog;b;a 5\nprog;d 2\n");
}

BOOST_AUTO_TEST_CASE(files_of_other_formats_are_read_one_by_one_for_the_perl_too) {
  const pe::testing::TempDir dir;
  const auto one = dir.file("one", "a;b 1\n");
  BOOST_TEST(stackfold({"--compat", one, one}, "").out == "a;b 2\n");
}

BOOST_AUTO_TEST_CASE(carriage_returns_are_stepped_over) {
  BOOST_TEST(folded("prog  12/34 [000] 1.0: 5 cycles: \r\n\t1f a (/x)\r\n\r\n") == "prog;a 5\n");
}

BOOST_AUTO_TEST_CASE(a_header_ends_the_sample_before_it) {
  BOOST_TEST(folded(kHeader + "\t1f a (/x)\n" + kHeader + "\t1f b (/x)\n\n") ==
             "prog;a 5\nprog;b 5\n");
  BOOST_TEST(folded_as_perl(kHeader + "\t1f a (/x)\n" + kHeader + "\t1f b (/x)\n\n") ==
             "prog;b;a 5\n");
}

BOOST_AUTO_TEST_CASE(one_event_is_folded_and_the_others_are_counted) {
  const std::string two =
      kHeader + "\t1f a (/x)\n\nprog  12/34 [000] 1.0: sched:sched_switch: prev=1\n\t1f b (/x)\n\n";
  const auto r = stackfold({}, two);
  BOOST_TEST(r.out == "prog;a 5\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 1 sample read; 1 sample of other events left out (folded: cycles; "
             "others: stackfold --event NAME)\n");
  BOOST_TEST(stackfold({"--event", "sched:sched_switch"}, two).out == "prog;b 1\n");
  BOOST_TEST(stackfold({"--all-events"}, two).out ==
             "cycles;prog;a 5\nsched:sched_switch;prog;b 1\n");
  BOOST_TEST(folded_as_perl(two) ==
             "prog;a 5\nprog;b 1\n");  // arguments hide the event's name from the perl script
}

BOOST_AUTO_TEST_CASE(the_name_of_an_event_says_nothing_to_a_terminal) {
  const auto r = stackfold(
      {}, "prog  12/34 [000] 1.0: \x1b[31mred: \n\t1f a (/x)\n\n" + kHeader + "\t1f a (/x)\n\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 1 sample read; 1 sample of other events left out (folded: "
             "\\x1b[31mred; others: stackfold --event NAME)\n");
}

BOOST_AUTO_TEST_CASE(modules_stand_for_unknown_functions) {
  const std::string input =
      kHeader +
      "\t1f [unknown] (/lib/y.so)\n\t2f [unknown] ([unknown])\n\t3f [unknown] ([vdso])\n\n";
  BOOST_TEST(folded(input) == "prog;[vdso];[unknown];[y.so] 5\n");
  BOOST_TEST(stackfold({"--addrs"}, input).out ==
             "prog;[vdso <3f>];[unknown <2f>];[y.so <1f>] 5\n");
}

BOOST_AUTO_TEST_CASE(frames_are_marked_by_their_modules) {
  const std::string input =
      kHeader +
      "\t1f k ([kernel.kallsyms])\n\t1f m (/lib/modules/x.ko.xz)\n\t1f v ([vdso])\n"
      "\t1f j (/tmp/perf-12.map)\n\t1f i (/tmp/jitted-12-3.so)\n\t1f l (/lib/libc.so.6)\n\n";
  BOOST_TEST(stackfold({"--annotate"}, input).out == "prog;l_[l];i_[j];j_[j];v;m_[k];k_[k] 5\n");
  BOOST_TEST(stackfold({"--compat", "--all"}, input).out == "prog;l;i;j_[j];v_[k];m;k_[k] 5\n");
}

BOOST_AUTO_TEST_CASE(a_deleted_module_is_no_part_of_a_name) {
  BOOST_TEST(folded(kHeader + "\t1f f+0x12 (/x (deleted))\n\n") == "prog;f 5\n");
  BOOST_TEST(folded_as_perl(kHeader + "\t1f f+0x12 (/x (deleted))\n\n") == "prog;f+0x12  5\n");
}

BOOST_AUTO_TEST_CASE(parameters_go_and_the_rest_of_a_name_stays) {
  BOOST_TEST(name("f(int, char)") == "f");
  BOOST_TEST(name("std::function<void (int)>::operator()(int) const") ==
             "std::function<void (int)>::operator()");
  BOOST_TEST(name("(anonymous namespace)::f(int)") == "(anonymous namespace)::f");
  BOOST_TEST(name("f(int)::{lambda(char)#1}::operator()(char) const") ==
             "f::{lambda(char)#1}::operator()");
  BOOST_TEST(name("net/http.(*conn).serve") == "net/http.(*conn).serve");
  BOOST_TEST(name("operator<<(std::ostream&, int)") == "operator<<");
  BOOST_TEST(name("A<(B)1>::operator->()") == "A<(B)1>::operator->");
  BOOST_TEST(name("broken(int") == "broken");
}

BOOST_AUTO_TEST_CASE(inlined_functions_are_frames_of_their_own) {
  BOOST_TEST(folded(kHeader + "\t1f a->b->c(int) (/x)\n\n") == "prog;a;b_[i];c_[i] 5\n");
  BOOST_TEST(folded(kHeader + "\t1f A::operator->(int) (/x)\n\n") == "prog;A::operator-> 5\n");
}

BOOST_AUTO_TEST_CASE(unknown_lines_are_counted_with_the_first) {
  const auto r = stackfold({}, kHeader + "\tgarbage\n\t1f a (/x)\n\nmore garbage\n");
  BOOST_TEST(r.out == "prog;a 5\n");
  BOOST_TEST(r.err == "stackfold: ignored 2 unknown lines; first: stdin:2: '\\x09garbage'\n");
}

BOOST_AUTO_TEST_CASE(folded_text_is_not_taken_for_perf_script) {
  BOOST_TEST(folded("java;a 1;b 12\njava;a 2\n") == "java;a 2\njava;a 1;b 12\n");
  BOOST_TEST(folded("a b 12\nc 3 4\n") == "a b 12\nc 3 4\n");
  // The frames of py-spy and rbspy, and names with numbers.
  for (const std::string text :
       {"gunicorn: worker 3 of 8;handle (views.py:12);render (t.py:4) 7\n"
        "gunicorn: worker 3 of 8;handle (views.py:12);sql (db.py:9) 9\n",
        "process 4242:\"gunicorn -w 4 app:app\";<module> (gunicorn:8);run (app.py:3) 90\n"
        "process 4243:\"gunicorn -w 4 app:app\";<module> (gunicorn:8);run (app.py:3) 25\n",
        "thread 140234 12\nthread 140234;run (a.py:3) 7\nthread 55 3\n"})
    BOOST_TEST(folded(text) == text);
}

BOOST_AUTO_TEST_CASE(samples_without_times_are_recognized_by_their_frames) {
  BOOST_TEST(folded("prog 12 \n\t1f a (/x)\n\nmy prog 12/13 cycles: \n\t1f a (/x)\n\n") ==
             "my_prog;a 1\nprog;a 1\n");
  BOOST_TEST(folded("prog 12 [001] \n\t1f a (/x)\n\n") == "prog;a 1\n");
}

BOOST_AUTO_TEST_CASE(records_of_other_kinds_are_no_samples) {
  const auto r = stackfold({},
                           "swapper 0 [000] 0.0: PERF_RECORD_MMAP -1/0: [0xf(0x1) @ 0]: x [k]\n"
                           "prog 12 [001] 1.0: PERF_RECORD_COMM exec: prog:12/12\n"
                           "prog 12 [001] 1.0: PERF_RECORD_NAMESPACES 12/12 - nr: 7\n"
                           "\t\t[0/net: 4/0xf00, 1/uts: 4/0xeff]\n" +
                               kHeader + "\t1f a (/x)\n" +
                               "prog 12 [001] 1.1: PERF_RECORD_SWITCH OUT\n"
                               "prog 12 [001] 1.2: PERF_RECORD_LOST id:3: lost:41\n");
  BOOST_TEST(r.out == "prog;a 5\n");
  BOOST_TEST(r.err == "stackfold: stdin: 41 samples lost by perf\n");
}

BOOST_AUTO_TEST_CASE(a_process_that_has_ended_has_the_number_minus_one) {
  const auto r = stackfold({"--pid"},
                           ":-1    -1/-1 [002] 6.557666:     1000 cycles: \n\t1f a (/x)\n\n"
                           ":-1    -1 6.557667:     1000 cycles: \n\t1f a (/x)\n\n");
  BOOST_TEST(r.out == ":-1--1;a 1000\n:-1-?;a 1000\n");
  BOOST_TEST(r.err == "");
}

BOOST_AUTO_TEST_CASE(samples_without_stacks_are_counted_and_explained) {
  const auto r =
      stackfold({},
                "    perf 12229 [000] 5.1: sched:sched_switch: prev_comm=perf next_pid=0\n"
                "     cc1 12153 [000] 5.2: sched:sched_switch: prev_comm=cc1 next_pid=1\n");
  BOOST_TEST(r.out == "cc1 1\nperf 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: no sample has a stack (record stacks: perf record -g)\n");
}

BOOST_AUTO_TEST_CASE(periods_of_a_clock_are_called_nanoseconds) {
  const std::string text = "prog 12/34 [000] 1.0: 4000000 cpu-clock:u: \n\t1f a (/x)\n\n";
  const auto r = stackfold({}, text);
  BOOST_TEST(r.out == "prog;a 4000000\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 4,000,000 ns of cpu-clock:u in 1 sample (count samples: stackfold "
             "--weight "
             "samples; name the unit: flamesvg --countname ns)\n");
  const pe::testing::TempDir dir;
  const std::string file = dir.file("script", text + text);
  const auto twice = stackfold({file, file});
  BOOST_TEST(twice.out == "prog;a 16000000\n");
  BOOST_TEST(twice.err.find("script: 8,000,000 ns of cpu-clock:u in 2 samples (") !=
             twice.err.npos);
  BOOST_TEST(twice.err.find("16,000,000") == twice.err.npos);
  BOOST_TEST(stackfold({"--annotate"}, text).out == "# unit: ns\nprog;a 4000000\n");
  const auto samples = stackfold({"--weight", "samples"}, text);
  BOOST_TEST(samples.out == "prog;a 1\n");
  BOOST_TEST(samples.err == "");
  BOOST_TEST(stackfold({"--compat"}, text).err == "");
}

// The output of simpleperf's report_sample.py, in its first form and in the current one.
BOOST_AUTO_TEST_CASE(the_samples_of_simpleperf_are_read) {
  BOOST_TEST(folded("RenderThread\t31850 [005] 684943.449089:\t\t10000 cpu-cycles:\n"
                    "    7d0b1c2d3e4f\tvoid a.b.C.run(int) (/data/app/base.apk!/lib/x.so)\n"
                    "ffffff9008a1f2b4\tel0_irq ([kernel.kallsyms])\n\n") ==
             "RenderThread;el0_irq;void a.b.C.run 10000\n");
  const std::string today =
      "my app\t31850/31881 [005] 684943.000089: 10000 cpu-clock:u:\n"
      "\t    7d0b1c2d3e4f f[+1234] (libx.so)\n\t        7d0b1c2d [unknown] (/system/liby.so)\n"
      "\t        7d0b1c2d main (/bin/app)\n\n";
  BOOST_TEST(folded(today) == "my_app;main;[liby.so];f[+1234] 10000\n");
  BOOST_TEST(stackfold({"--tid"}, today).out ==
             "my_app-31850/31881;main;[liby.so];f[+1234] 10000\n");
  BOOST_TEST(folded("app\t31850 [005] 684943.449089:\t\tcpu-cycles:\n\t7d0b f (/bin/app)\n\n") ==
             "app;f 1\n");
}

BOOST_AUTO_TEST_CASE(a_format_can_be_named) {
  BOOST_TEST(stackfold({"--from", "folded"}, kHeader).err.find("not \"stack count\"") !=
             std::string::npos);
  BOOST_TEST(stackfold({"--from", "cobol"}, "").status == 2);
  BOOST_TEST(stackfold({"--from", "stream"}, kHeader).status == 1);
}

BOOST_AUTO_TEST_CASE(folded_lines_with_numbers_in_their_frames_are_no_headers) {
  for (const std::string text : {"main;foo 12 \nmain;bar 3 \n", "main;foo 12\t\n",
                                 "a;b 1\r\nc 2\r\n", "Worker 3 (busy);run 10\n",
                                 "main;std::array<int, 4 >::at 12\n", "main;lambda 1 at x;foo 5\n"})
    BOOST_TEST(folded(text) == stackfold({"--from", "folded"}, text).out, text);
}

BOOST_AUTO_TEST_CASE(samples_without_frames_are_known_by_their_event) {
  BOOST_TEST(folded("prog 12/34 [000] 1.0: 5 cycles: \n\n") == "prog 5\n");
  BOOST_TEST(folded("prog 12 1.0: 5 cycles: \nother 13 1.0: 6 cycles: \n") == "other 6\nprog 5\n");
}

BOOST_AUTO_TEST_CASE(a_name_of_nothing_but_open_brackets_takes_no_longer_than_another,
                     *pe::tests::costly()) {
  for (const std::string bracket : {"(", "<(", "()<", "{lambda("}) {
    std::string name = "a";
    while (name.size() < 100'000)
      name += bracket;
    BOOST_TEST(!pe::fold::function_name(name).empty());
    BOOST_TEST(!pe::fold::split_inlined(name).empty());
    BOOST_TEST(!pe::fold::without_arguments(name).empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
