// SPDX-License-Identifier: MIT

#include <boost/test/unit_test.hpp>

#include "stream/records/sample.h"
#include "support/facts.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"

using pe::stream::kKernelPid;
using pe::testing::MadeSample;
using pe::testing::Result;
using pe::testing::StreamBuilder;
using pe::testing::without_facts;

BOOST_AUTO_TEST_SUITE(stackfold_tool)

namespace {

using pe::testing::stackfold;

/// Folds a stream that ends with its last round.
Result stackfold(const std::vector<std::string>& args, StreamBuilder stream) {
  return stackfold(args, stream.round().text());
}

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);

/// main (0x100) calls f (0x200), which calls the kernel (0xff00).  Symbols belong to the address
/// one byte before a return address.
StreamBuilder annotated() {
  StreamBuilder stream;
  stream.event()
      .comm(0, 1, 1, "my prog")
      .symbol({.id = 1, .flags = 0, .name = "main", .module = "/bin/p"})
      .symbol({.id = 2, .flags = pe::stream::kSymbolLibrary, .name = "f", .module = "/lib/l.so"})
      .symbol({.id = 3,
               .flags = pe::stream::kSymbolKernel,
               .name = "sys_read",
               .module = "[kernel.kallsyms]"})
      .symbol({.id = 4, .flags = pe::stream::kSymbolInlined, .name = "tiny", .module = "/bin/p"})
      .symbol({.id = 5,
               .flags = pe::stream::kSymbolJit,
               .name = "LazyCompile:x;y",
               .module = "perf-1.map"})
      .location(1, 0x0ff, {4, 1})
      .location(1, 0x200, {2})
      .location(1, 0x300, {5})
      .location(kKernelPid, 0xff00, {3});
  return stream;
}

}  // namespace

BOOST_AUTO_TEST_CASE(adds_up_equal_stacks_root_first) {
  auto stream = annotated();
  stream.sample({.time_ns = 1, .chain = {kKernel, 0xff00, kUser, 0x200, 0x100}})
      .sample({.time_ns = 2, .chain = {kUser, 0x200, 0x100}})
      .sample({.time_ns = 3, .chain = {kKernel, 0xff00, kUser, 0x200, 0x100}});
  const auto r = stackfold({}, stream);
  BOOST_TEST(r.out == "my_prog;main;tiny;f 1\nmy_prog;main;tiny;f;sys_read 2\n");
  BOOST_TEST(r.err == "");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(functions_of_scripts_have_names_and_a_mark) {
  constexpr std::uint64_t kScript = 0x00fe000000010000;
  auto stream = annotated();
  stream.symbol({.id = 6, .flags = pe::stream::kSymbolScript, .name = "f", .module = "/a.py"})
      .map(0, 1, kScript, 0x10000, 0, "[python] C.g\\040h /a.py:3")
      .location(1, 0x400, {6})
      .sample({.chain = {kUser, kScript + 2, 0x401}});
  BOOST_TEST(without_facts(stackfold({"--annotate"}, stream).out) == "my_prog;f_[s];C.g h_[s] 1\n");
}

BOOST_AUTO_TEST_CASE(lines_come_before_marks) {
  auto stream = annotated();
  stream
      .symbol({.id = 6,
               .flags = pe::stream::kSymbolScript,
               .line = 3,
               .name = "f",
               .module = {},
               .file = "/x/a.py"})
      .symbol({.id = 7, .flags = 0, .line = 4, .name = "m", .module = "/p", .file = "m.c"})
      .location(1, 0x400, {6})
      .location(1, 0x500, {7})
      .sample({.chain = {kUser, 0x400, 0x501}});
  BOOST_TEST(without_facts(stackfold({"--annotate", "--lines"}, stream).out) ==
             "my_prog;m:m.c:4;f:a.py:3_[s] 1\n");
  BOOST_TEST(stackfold({"--lines"}, stream).out == "my_prog;m:m.c:4;f:a.py:3 1\n");
}

BOOST_AUTO_TEST_CASE(marks_frames_by_kind) {
  auto stream = annotated();
  stream.sample({.chain = {kKernel, 0xff00, kUser, 0x200, 0x100}})
      .sample({.chain = {kUser, 0x300}});
  BOOST_TEST(without_facts(stackfold({"--annotate"}, stream).out) ==
             "my_prog;LazyCompile:x:y_[j] 1\nmy_prog;main;tiny_[i];f_[l];sys_read_[k] 1\n");
  BOOST_TEST(stackfold({"--kernel"}, stream).out ==
             "my_prog;LazyCompile:x:y 1\nmy_prog;main;tiny;f;sys_read_[k] 1\n");
  BOOST_TEST(stackfold({"--jit"}, stream).out ==
             "my_prog;LazyCompile:x:y_[j] 1\nmy_prog;main;tiny;f;sys_read 1\n");
}

BOOST_AUTO_TEST_CASE(modules_go_before_names) {
  auto stream = annotated();
  stream.sample({.chain = {kKernel, 0xff00, kUser, 0x200, 0x100}})
      .sample({.chain = {kUser, 0x300}});
  BOOST_TEST(stackfold({"--modules"}, stream).out ==
             "my_prog;[jit]`LazyCompile:x:y 1\n"
             "my_prog;p`main;p`tiny;l.so`f;[kernel]`sys_read 1\n");
  BOOST_TEST(stackfold({"--modules", "--all"}, stream).out ==
             "my_prog;[jit]`LazyCompile:x:y_[j] 1\n"
             "my_prog;p`main;p`tiny;l.so`f;[kernel]`sys_read_[k] 1\n");
  BOOST_TEST(stackfold({"--modules", "--compat"}, stream).status == 2);
}

BOOST_AUTO_TEST_CASE(names_processes_and_threads_in_the_root_frame) {
  auto stream = annotated();
  stream.sample({.pid = 1, .tid = 4, .chain = {kUser, 0x200}});
  BOOST_TEST(stackfold({"--pid"}, stream).out == "my_prog-1;f 1\n");
  BOOST_TEST(stackfold({"--tid"}, stream).out == "my_prog-1/4;f 1\n");
}

BOOST_AUTO_TEST_CASE(a_later_location_replaces_an_earlier_one) {
  auto stream = annotated();
  stream.sample({.time_ns = 1, .chain = {kUser, 0x200}})
      .location(1, 0x200, {1})
      .sample({.time_ns = 2, .chain = {kUser, 0x200}});
  BOOST_TEST(stackfold({}, stream).out == "my_prog;f 1\nmy_prog;main 1\n");
}

BOOST_AUTO_TEST_CASE(a_thread_renamed_between_samples_has_two_roots) {
  auto stream = annotated();
  stream.sample({.time_ns = 1, .chain = {kUser, 0x200}})
      .comm(2, 1, 1, "new")
      .sample({.time_ns = 3, .chain = {kUser, 0x200}});
  BOOST_TEST(stackfold({}, stream).out == "my_prog;f 1\nnew;f 1\n");
}

BOOST_AUTO_TEST_CASE(a_raw_stream_gives_modules_and_offsets) {
  const auto stream = StreamBuilder()
                          .event()
                          .comm(0, 1, 1, "p")
                          .map(0, 1, 0x1000, 0x1000, 0x400, "/usr/lib/libx.so.6")
                          .sample({.chain = {kKernel, 0xff00, kUser, 0x1010, 0x1021, 0x9}});
  BOOST_TEST(without_facts(stackfold({"--annotate"}, stream).out) ==
             "p;[unknown];libx.so.6+0x420_[l];libx.so.6+0x410_[l];[kernel]+0xff00_[k] 1\n");
}

BOOST_AUTO_TEST_CASE(a_tower_of_unknown_frames_is_one) {
  auto stream = annotated();
  stream.symbol({.id = 9, .flags = pe::stream::kSymbolUnresolved, .name = "[unknown]"})
      .location(1, 0x5f, {9})
      .location(1, 0x7f, {9});
  stream.sample({.chain = {kUser, 0x200, 0x60, 0x60, 0x80, 0x60, 0x100}});
  BOOST_TEST(stackfold({}, stream).out == "my_prog;main;tiny;[unknown];f 1\n");
}

BOOST_AUTO_TEST_CASE(a_sample_without_frames_counts_for_its_thread) {
  BOOST_TEST(stackfold({}, StreamBuilder().event().comm(0, 1, 1, "p").sample({})).out == "p 1\n");
}

BOOST_AUTO_TEST_CASE(names_cannot_break_the_format) {
  auto stream = StreamBuilder();
  stream.event()
      .comm(0, 1, 1, "a;b\nc")
      .symbol({.id = 1, .name = "evil;\n\x1b[31m 99 ", .module = ""})
      .symbol({.id = 2, .name = "", .module = ""})
      .location(1, 0x10, {1})
      .location(1, 0x1f, {2})
      .sample({.chain = {kUser, 0x10, 0x20}});
  BOOST_TEST(stackfold({}, stream).out == "a:b?c;[unknown];evil:??[31m 99 1\n");
}

BOOST_AUTO_TEST_CASE(one_event_is_folded_and_the_others_are_counted) {
  auto stream = StreamBuilder();
  stream.event(7, "cycles").event(8, "page-faults").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .id = 7})
      .sample({.time_ns = 2, .id = 8})
      .sample({.time_ns = 3, .id = 8});
  const auto first = stackfold({}, stream);
  BOOST_TEST(first.out == "p 1\n");
  BOOST_TEST(first.err ==
             "stackfold: stdin: 3 samples read; 2 samples of other events left out (folded: "
             "cycles; others: stackfold --event NAME)\n");
  const auto second = stackfold({"--event", "page-faults"}, stream);
  BOOST_TEST(second.out == "p 2\n");
  BOOST_TEST(second.err == "");  // the user chose the event
  const auto unknown = stackfold({"--event", "gold"}, stream);
  BOOST_TEST(unknown.status == 1);
  BOOST_TEST(unknown.err == "stackfold: stdin: no event 'gold' (it has cycles, page-faults)\n");
}

BOOST_AUTO_TEST_CASE(every_event_may_be_folded_under_its_name) {
  auto stream = StreamBuilder();
  stream.event(7, "cycles").event(8, "offcpu").unit(8, "ns").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .id = 7}).sample({.time_ns = 2, .id = 8, .period = 3000});
  const auto r = stackfold({"--all-events"}, stream);
  BOOST_TEST(r.out == "cycles;p 1\noffcpu;p 3\n");
  BOOST_TEST(r.err.empty());
}

BOOST_AUTO_TEST_CASE(a_stream_without_names_is_told) {
  auto stream = StreamBuilder();
  stream.event().comm(0, 1, 1, "p").sample({.time_ns = 1, .chain = {kUser, 0x100}});
  BOOST_TEST(stackfold({}, stream).err ==
             "stackfold: stdin: no frame has a name (run pe-symbolize before stackfold)\n");
}

BOOST_AUTO_TEST_CASE(a_stream_without_source_lines_is_told_to_who_asks_for_them) {
  BOOST_TEST(stackfold({"--lines"}, annotated()).err ==
             "stackfold: stdin: 0 samples in it\n"
             "stackfold: stdin: no frame has a source line (run pe-symbolize --lines)\n");
  BOOST_TEST(stackfold({}, annotated()).err == "stackfold: stdin: 0 samples in it\n");
}

BOOST_AUTO_TEST_CASE(the_event_named_first_is_folded_even_if_another_happened_first) {
  auto stream = StreamBuilder();
  stream.event(5, "dummy:HG").event(7, "cycles").event(8, "page-faults").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .id = 8}).sample({.time_ns = 2, .id = 7});
  BOOST_TEST(stackfold({}, stream).err.find("(folded: cycles;") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(weights_are_the_period_where_the_event_has_a_unit) {
  auto stream = StreamBuilder();
  stream.event(7, "offcpu").unit(7, "ns").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .period = 2600}).sample({.time_ns = 2, .period = 900});
  BOOST_TEST(stackfold({}, stream).out == "p 4\n");  // 3.5 microseconds
  BOOST_TEST(stackfold({"--weight", "samples"}, stream).out == "p 2\n");
  BOOST_TEST(stackfold({"--weight", "period"}, stream).out == "p 3500\n");
}

BOOST_AUTO_TEST_CASE(bytes_and_allocations_are_weights_as_they_are) {
  for (const char* unit : {"bytes", "allocations"}) {
    auto stream = StreamBuilder();
    stream.event(7, "alloc").unit(7, unit).comm(0, 1, 1, "p");
    stream.sample({.time_ns = 1, .period = 2600}).sample({.time_ns = 2, .period = 900});
    BOOST_TEST(stackfold({}, stream).out == "p 3500\n");
  }
}

BOOST_AUTO_TEST_CASE(waits_that_had_not_ended_are_marked) {
  auto stream = StreamBuilder();
  stream.event(7, "offcpu").unit(7, "ns").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .period = 2000});
  stream.sample({.time_ns = 2, .period = 3000, .misc = pe::stream::kMiscUnfinished});
  BOOST_TEST(stackfold({}, stream).out == "p 2\np;[still waiting] 3\n");
  auto other = StreamBuilder();  // the event's unit is not a time, so the bit means nothing
  other.event().comm(0, 1, 1, "p").sample({.misc = pe::stream::kMiscUnfinished});
  BOOST_TEST(stackfold({}, other).out == "p 1\n");
}

BOOST_AUTO_TEST_CASE(losses_are_in_the_closing_line) {
  const auto stream = StreamBuilder().event().comm(0, 1, 1, "p").sample({}).lost(5, 3);
  const auto r = stackfold({}, stream);
  BOOST_TEST(r.out == "p 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: 1 sample read; 3 samples lost while recording\n");
}

BOOST_AUTO_TEST_CASE(a_cut_stream_is_folded_reported_and_fails) {
  auto stream = annotated();
  stream.sample({.chain = {kUser, 0x200}});
  const auto r = stackfold({}, stream.text() + "cut");
  BOOST_TEST(r.out == "my_prog;f 1\n");
  BOOST_TEST(r.err.find("truncated at byte") != std::string::npos);
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_CASE(every_cut_is_survived_with_a_message) {
  auto stream = annotated();
  stream.sample({.chain = {kUser, 0x200, 0x100}}).round();
  const std::string& whole = stream.text();
  for (std::size_t size = 1; size < whole.size(); ++size)
    BOOST_TEST(!stackfold({}, whole.substr(0, size)).err.empty(), "cut at " << size);
  BOOST_TEST(stackfold({}, whole).err.empty());
}

BOOST_AUTO_TEST_CASE(merges_folded_files_and_streams) {
  const pe::testing::TempDir dir;
  const auto stream =
      dir.file("s.pe", StreamBuilder().event().comm(0, 1, 1, "p").sample({}).round().text());
  const auto text = dir.file("t.folded", "a;b 1\np 4\n");
  BOOST_TEST(stackfold({stream, text, "-"}, "a;b 2\n").out == "a;b 3\np 5\n");
}

BOOST_AUTO_TEST_CASE(lines_that_are_not_folded_text_are_counted_with_the_first) {
  const auto r = stackfold({"--from", "folded"}, "a 1\nnonsense\nb 2\n\x01\x02\n");
  BOOST_TEST(r.out == "a 1\nb 2\n");
  BOOST_TEST(
      r.err ==
      "stackfold: ignored 2 lines that are not \"stack count\"; first: stdin:2: 'nonsense'\n");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(text_of_no_known_format_is_refused) {
  const auto r = stackfold({}, "\nTotal of column\nf 1\ng 2\nh 3\n");
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err ==
             "stackfold: stdin: unknown format; first line: 'Total of column' (stackfold "
             "--help lists the formats: choose one by --from)\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(stackfold({},
                       "\x7f"
                       "ELF\2\1\1 main 1\n")
                 .err ==
             "stackfold: stdin: a program, not a profile (record it: stackpipe record -o "
             "FILE.folded -- PROGRAM)\n");
  // the indentation shows that this is a table
  BOOST_TEST(stackfold({}, "  f 1\n   g 2\n").status == 1);
}

BOOST_AUTO_TEST_CASE(one_line_in_ten_after_the_first_ten_of_folded_text_may_be_something_else) {
  std::string text;
  for (char name = 'a'; name <= 'j'; ++name)
    text.append(1, name).append(" 1\n");
  BOOST_TEST(stackfold({}, text + "note\n").status == 0);
  BOOST_TEST(stackfold({}, text + "note\nnote\n").status == 1);
  BOOST_TEST(stackfold({}, "note\n" + text).status == 1);
}

// Text of other tools, some of whose lines look like samples, frames or stacks.
BOOST_AUTO_TEST_CASE(text_of_other_tools_is_refused) {
  for (const char* text : {
           // a log
           "2024-01-01 10:00:00 server 12 started\n  at com.example.Main (Main.java:3)\n"
           "2024-01-01 10:00:01 server 12 stopped\n",
           "Jan  1 10:00:00 host kernel: [   12.345678] foo 12\n  bar baz 3\n",
           "worker 12 [3]: got 5\n  deadbeef foo (bar)\nworker 12 [3]: got 5\n",
           // vmstat
           "procs ---memory---- --io-\n r  b   swpd   free\n 3  0      0 20891952\n",
           // top
           "top - 10:00:00 up 1 min, load average: 0.12, 0.05, 0.02\nTasks: 3 total, 0 zombie\n",
           // ps
           "  PID TTY          TIME CMD\n  1 ?        00:00:01 init\n",
           // ss
           "State  Recv-Q Send-Q\nLISTEN 0      128\n",
           // strace, strace -k
           "close(3)                                = 0\nread(3, \"\", 4096)  = 0\n",
           "close(3) = 0\n > /usr/lib/libc.so.6(__close+0x13) [0xf7a83]\n",
           // massif
           "desc: --massif-out-file=m\ncmd: ls\ntime_unit: i\n#-----------\nsnapshot=0\n",
           // gperftools and Go
           "heap profile:      1:     1024 [    10:    20480] @ heapprofile\n"
           "     1:     1024 [     5:    10240] @ 0x0000000000401234\n",
           "goroutine profile: total 5\n3 @ 0x43 0x44\n#\t0x43\tmain.x+0x1\t/x/m.go:3\n",
           // gprof
           "Flat profile:\n\n  %   cumulative\n 33.34      0.02     7208     0.00  open\n",
           // JSON, CSV
           "{\"a\": 1,\n \"b\": [1, 2],\n \"c\": 12\n}\n",
           "name,calls\nfoo,1\nbar, 3\n",
           // valgrind
           "==12== Memcheck, a memory error detector\n==12== Command: ls\n==12== total 12\n",
       }) {
    const auto r = stackfold({}, text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(r.status == 1);
      BOOST_TEST(r.out == "");
      BOOST_TEST(r.err.find("stdin: unknown format; first line: ") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_no_part_of_a_name) {
  BOOST_TEST(stackfold({}, "\xef\xbb\xbfmain;a 3\nmain;b 4\n").out == "main;a 3\nmain;b 4\n");
  BOOST_TEST(stackfold({"--from", "folded"}, "\xef\xbb\xbfmain;a 3\n").out == "main;a 3\n");
  BOOST_TEST(stackfold({}, std::string("\xff\xfem\0a\0", 6)).err ==
             "stackfold: stdin: UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)\n");
}

BOOST_AUTO_TEST_CASE(a_first_line_of_folded_text_may_be_longer_than_what_tells_a_format) {
  const std::string stack(100'000, 'x');
  BOOST_TEST(stackfold({}, stack + " 7\n").out == stack + " 7\n");
}

BOOST_AUTO_TEST_CASE(refuses_a_weight_it_does_not_know) {
  const auto r = stackfold({"--weight", "gold"}, "a;b 1\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(
      r.err ==
      "stackfold: stdin: --weight 'gold': folded text has no fields: choose samples or period\n");
}

BOOST_AUTO_TEST_CASE(events_that_contradict_are_refused) {
  BOOST_TEST(stackfold({"--all-events", "--event", "x"}).err ==
             "stackfold: --all-events: cannot be combined with --event (see --help)\n");
  BOOST_TEST(stackfold({"--event", "x"}, "a;b 1\n").err ==
             "stackfold: stdin: --event: folded text has no events\n");
}

BOOST_AUTO_TEST_CASE(what_is_compressed_by_zstd_is_said_to_be) {
  const auto r = stackfold({}, "\x28\xb5\x2f\xfd\x04\x40 and so on");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: stdin: compressed by zstd (unpack it: zstd -dc FILE)\n");
}

BOOST_AUTO_TEST_CASE(an_event_that_a_text_does_not_have_is_an_error) {
  const auto r = stackfold({"--event", "nosuch"}, "prog 1/2 1.0: 5 cycles: \n\t1f f (/x)\n\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err.find("no sample of event 'nosuch'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
