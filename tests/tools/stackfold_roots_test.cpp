// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stream/records/sample.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"

using namespace std::string_literals;
using pe::testing::Result;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_roots)

namespace {

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);

Result folded_with(const std::vector<std::string>& args, StreamBuilder stream) {
  return pe::testing::stackfold(args, stream.round().text());
}

std::string folded(const std::string& root, const StreamBuilder& stream) {
  const auto r = folded_with({"--root", root}, stream);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "");
  return r.out;
}

/// A stream in which all code of all processes is main.
struct Processes : StreamBuilder {
  Processes() {
    event().symbol({.id = 1, .name = "main", .module = "/bin/p"});
    for (std::uint32_t pid = 1; pid < 100; ++pid)
      location(pid, 0x100, {1});
  }
  Processes& at(std::uint64_t time_ns, std::uint32_t pid, std::uint32_t tid = 0) {
    sample({.time_ns = time_ns, .pid = pid, .tid = tid == 0 ? pid : tid, .chain = {kUser, 0x100}});
    return *this;
  }
};

/// make (10) starts cc (20), which executes cc1.
Processes build() {
  Processes all;
  all.command(1, 10, "make\0-j2\0"s, PERF_RECORD_MISC_COMM_EXEC, 5);
  all.at(2, 10);
  all.fork(3, 20, 10);
  all.at(4, 20);
  all.command(5, 20, "/usr/bin/cc\0a.c\0"s);
  all.at(6, 20);
  all.command(7, 20, "/usr/lib/cc1\0a.c\0"s);
  all.at(8, 20);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_tree_has_the_command_lines_of_the_samples_time) {
  BOOST_TEST(folded("tree", build()) ==
             "make -j2;cc a.c;main 1\n"
             "make -j2;cc1 a.c;main 1\n"
             "make -j2;main 1\n"
             "make -j2;make -j2;main 1\n");
}

BOOST_AUTO_TEST_CASE(a_command_line_is_one_frame) {
  BOOST_TEST(folded("command", build()) ==
             "cc a.c;main 1\n"
             "cc1 a.c;main 1\n"
             "make -j2;main 2\n");
}

BOOST_AUTO_TEST_CASE(processes_may_have_their_ids) {
  BOOST_TEST(folded_with({"--root", "command", "--pid"}, build()).out ==
             "cc a.c [20];main 1\n"
             "cc1 a.c [20];main 1\n"
             "make -j2 [10];main 1\n"
             "make -j2 [20];main 1\n");
  BOOST_TEST(folded_with({"--root", "process", "--pid"}, build()).out ==
             "comm-10;main 1\n"
             "comm-20;main 3\n");
}

BOOST_AUTO_TEST_CASE(threads_are_below_their_process) {
  Processes all;
  all.comm(0, 10, 10, "java").comm(0, 10, 11, "gc");
  all.at(1, 10).at(2, 10, 11);
  BOOST_TEST(folded("thread", all) == "java;gc;main 1\njava;java;main 1\n");
  BOOST_TEST(folded("process", all) == "java;main 2\n");
  BOOST_TEST(folded("tree", all) == "java;gc;main 1\njava;main 1\n");
  BOOST_TEST(folded_with({"--root", "thread", "--tid"}, all).out ==
             "java-10/10;gc-10/11;main 1\njava-10/10;java-10/10;main 1\n");
}

BOOST_AUTO_TEST_CASE(ancestors_end_at_the_first_that_the_stream_does_not_know) {
  Processes all;
  all.command(0, 10, "sh\0"s, 0, 5).command(0, 20, "cc\0"s, 0, 10).command(0, 30, "ls\0"s, 0, 6);
  all.at(1, 20).at(2, 30);
  BOOST_TEST(folded("tree", all) == "ls;main 1\nsh;cc;main 1\n");
}

BOOST_AUTO_TEST_CASE(a_program_without_a_command_line_has_its_name) {
  Processes all;
  all.command(1, 10, "make\0"s).fork(2, 20, 10).comm(3, 20, 20, "cc", true);
  all.at(4, 20);
  BOOST_TEST(folded("tree", all) == "make;cc;main 1\n");
}

BOOST_AUTO_TEST_CASE(a_command_line_may_precede_its_exec) {
  Processes all;
  all.command(1, 10, "sh\0-c\0"s)
      .command(2, 10, "cc\0a.c\0"s, pe::stream::kMiscOfNextExec)
      .comm(3, 10, 10, "cc", true);
  all.at(4, 10);
  all.comm(5, 10, 10, "as", true);  // its command line was lost
  all.at(6, 10);
  BOOST_TEST(folded("command", all) == "as;main 1\ncc a.c;main 1\n");
}

BOOST_AUTO_TEST_CASE(a_renamed_process_keeps_its_command_line) {
  Processes all;
  all.command(1, 10, "server\0-v\0"s).comm(2, 10, 10, "worker");
  all.at(3, 10);
  BOOST_TEST(folded("command", all) == "server -v;main 1\n");
}

BOOST_AUTO_TEST_CASE(children_of_an_ended_parent_stay_below_it_when_its_pid_is_used_again) {
  Processes all;
  all.command(1, 10, "sh\0"s, PERF_RECORD_MISC_COMM_EXEC, 5).fork(2, 20, 10);
  all.command(3, 20, "old\0"s).exit(4, 10, 10);
  all.command(5, 30, "make\0"s).fork(6, 10, 30).command(7, 10, "cc\0"s).fork(8, 40, 10);
  all.at(9, 20).at(10, 40);
  BOOST_TEST(folded("tree", all) == "make;cc;cc;main 1\nsh;old;main 1\n");
}

BOOST_AUTO_TEST_CASE(parents_in_a_circle_end) {
  Processes all;
  all.command(0, 10, "a\0"s, 0, 20).command(0, 20, "b\0"s, 0, 10);
  all.at(1, 10);
  const std::string text = folded("tree", all);
  BOOST_TEST(text.starts_with("[more ancestors];"));
  BOOST_TEST(text.ends_with(";b;a;main 1\n"));
  BOOST_TEST(text.size() < 500U);
}

BOOST_AUTO_TEST_CASE(a_long_chain_of_processes_is_cut) {
  Processes all;
  all.command(1, 1, "sh\0"s);
  for (std::uint32_t pid = 2; pid < 90; ++pid)
    all.fork(pid, pid, pid - 1);
  all.at(100, 89);
  BOOST_TEST(folded("tree", all).starts_with("[more ancestors];sh;sh;"));
}

namespace {

/// A parent (10) waits for its child (20) from 1000 to 3000 ns, and the child for a disk.
struct Waits : StreamBuilder {
  explicit Waits(bool has_child = true) {
    event(7, "offcpu").unit(7, "ns");
    symbol({.id = 1, .name = "main", .module = "/bin/p"});
    symbol({.id = 2,
            .flags = pe::stream::kSymbolKernel,
            .name = "do_wait",
            .module = "[kernel.kallsyms]"});
    symbol({.id = 3, .name = "do_wait", .module = "/bin/p"});
    symbol({.id = 4, .name = "__wait4", .module = "/usr/lib/libc.so.6"});
    for (const std::uint32_t pid : {10U, 20U})
      location(pid, 0x100, {1}).location(pid, 0x1ff, {3}).location(pid, 0x300, {4});
    location(pe::stream::kKernelPid, 0xffff'0200, {2});
    std::uint64_t id = 5;
    for (const std::string_view name : {"kernel_clone", "wait_for_completion_state", "schedule"}) {
      symbol({.id = id, .flags = pe::stream::kSymbolKernel, .name = name});
      location(pe::stream::kKernelPid, 0xffff'0000 + 0x100 * id, {id});
      ++id;
    }
    command(100, 10, "sh\0"s);
    if (has_child)
      fork(1000, 20, 10).command(1100, 20, "cc\0"s);
  }
  Waits& wait(std::uint64_t time_ns, std::uint32_t pid, std::vector<std::uint64_t> chain) {
    sample({.time_ns = time_ns, .pid = pid, .tid = pid, .chain = std::move(chain), .period = 2000});
    return *this;
  }
};

const std::vector<std::uint64_t> kWaits = {kKernel, 0xffff'0200, kUser, 0x100};
const std::string kLeftOut =
    "stackfold: stdin: 2 samples read; 0.000 s of waits for children left out, because the "
    "children are drawn (keep them: stackfold --root command)\n";

}  // namespace

BOOST_AUTO_TEST_CASE(a_wait_for_a_child_is_left_out_of_a_tree) {
  Waits all;
  all.wait(2500, 20, {kUser, 0x100});
  all.exit(2900, 20, 20);
  all.wait(3000, 10, kWaits);
  const auto r = folded_with({"--root", "tree"}, all);
  BOOST_TEST(r.out == "sh;cc;main 2\n");
  BOOST_TEST(r.err == kLeftOut);
  BOOST_TEST(folded("command", all) == "cc;main 2\nsh;main;do_wait 2\n");
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_child_is_known_by_the_library_without_the_kernels_frames) {
  Waits all;
  all.wait(3000, 10, {kUser, 0x300, 0x101}).wait(2000, 20, {kUser, 0x100});
  BOOST_TEST(folded_with({"--root", "tree"}, all).err == kLeftOut);
}

BOOST_AUTO_TEST_CASE(a_vfork_waits_for_its_child) {
  Waits all;
  all.wait(3000, 10, {kKernel, 0xffff'0700, 0xffff'0601, 0xffff'0501, kUser, 0x100});
  all.wait(3500, 10, {kKernel, 0xffff'0700, 0xffff'0501, kUser, 0x100});  // for memory, say
  const auto r = folded_with({"--root", "tree"}, all);
  BOOST_TEST(r.out == "sh;main;kernel_clone;schedule 2\n");
  BOOST_TEST(r.err == kLeftOut);
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_process_that_is_not_recorded_stays) {
  BOOST_TEST(folded("tree", Waits(false).wait(3000, 10, kWaits)) == "sh;main;do_wait 2\n");
}

BOOST_AUTO_TEST_CASE(a_wait_after_the_last_childs_end_stays) {
  Waits all;
  all.exit(2000, 20, 20);
  BOOST_TEST(folded("tree", all.wait(2'000'000'000, 10, kWaits)) == "sh;main;do_wait 2\n");
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_child_whose_end_is_recorded_already_is_left_out) {
  Waits all;
  all.wait(1500, 20, {kUser, 0x100});
  all.exit(2000, 20, 20);
  all.wait(5000, 10, kWaits);  // since 3000
  BOOST_TEST(folded_with({"--root", "tree"}, all).out == "sh;cc;main 2\n");
}

BOOST_AUTO_TEST_CASE(a_function_of_the_program_with_the_kernels_name_stays) {
  BOOST_TEST(folded("tree", Waits().wait(3000, 10, {kUser, 0x100, 0x200})) ==
             "sh;do_wait;main 2\n");
}

BOOST_AUTO_TEST_CASE(marks_the_frames_of_waits_but_not_their_roots) {
  Waits all(false);
  all.wait(3000, 10, {kUser, 0x100});
  BOOST_TEST(folded_with({"--mark-waits"}, all).out == "comm;main_[o] 2\n");
  BOOST_TEST(folded_with({"--mark-waits", "--root", "thread"}, all).out ==
             "comm;comm;main_[o] 2\n");
  BOOST_TEST(folded_with({"--mark-waits"}, Waits(false).wait(3000, 10, {})).out == "comm_[o] 2\n");
  BOOST_TEST(folded_with({"--mark-waits", "--root", "command"}, build()).out.find("_[o]") ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_what_has_no_processes) {
  const auto r = pe::testing::stackfold({"--root", "tree"}, "main;work 1\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: stdin: --root: only for a sample stream\n");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--root", "tree", "--compat"},
        {"--root", "tree", "--tid"},
        {"--root", "tree", "--to", "pprof"},
        {"--root", "parent"}})
    BOOST_TEST(pe::testing::stackfold(args, "").status == 2);
}

BOOST_AUTO_TEST_SUITE_END()
