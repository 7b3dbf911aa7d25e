// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "pe-record/engines.h"
#include "stream/session.h"
#include "support/run_tool.h"

using pe::testing::Result;

namespace {

Result record(const std::vector<std::string>& args) {
  return pe::testing::run_tool(pe::kPeRecord, args);
}

/// The message of a refused command line, without the tool's name and the pointer to --help.
std::string refusal(const std::vector<std::string>& args) {
  const auto r = record(args);
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.out == "");
  std::string text = r.err;
  BOOST_TEST(text.starts_with("pe-record: "));
  BOOST_TEST(text.ends_with(" (see --help)\n"));
  return text.substr(11, text.size() - 11 - 14);
}

/// Records with these options.  Returns the attr of the first event in the stream.
perf_event_attr recorded_attr(std::vector<std::string> args) {
  args.insert(args.begin(), {"-q", "-e", "cpu-clock"});
  const auto r = record(args);
  auto input = pe::testing::memory_input(r.out);
  pe::stream::Session session(input);
  while (session.next()) {
  }
  BOOST_TEST_REQUIRE(!session.events().all().empty(), r.err);
  return session.events().all().front().attr;
}

/// Returns the kernel's maximum rate in Hz.
std::uint64_t most_hz() {
  std::uint64_t hz = 0;
  std::ifstream("/proc/sys/kernel/perf_event_max_sample_rate") >> hz;
  return hz;
}

/// Returns the rate, in Hz, that a recording with these options has.
std::uint64_t recorded_hz(const std::vector<std::string>& args) {
  return recorded_attr(args).sample_freq;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pe_record_tool)

BOOST_AUTO_TEST_CASE(a_command_is_sampled_more_often_than_what_runs_already) {
  const std::string own = std::to_string(::getpid());
  BOOST_TEST(recorded_hz({"--", "true"}) == std::min<std::uint64_t>(997, most_hz()));
  BOOST_TEST(recorded_hz({"-p", own, "-d", "0.01"}) == std::min<std::uint64_t>(99, most_hz()));
  BOOST_TEST(recorded_hz({"-F", "max", "--", "true"}) == most_hz());
  BOOST_TEST(recorded_hz({"-F", "7", "--", "true"}) == 7U);
}

BOOST_AUTO_TEST_CASE(records_a_command_from_its_first_mapping) {
  const auto r = record(
      {"-F", "997", "--", "/bin/sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"});
  BOOST_TEST(r.status == 0);
  auto input = pe::testing::memory_input(r.out);
  pe::stream::Session session(input);
  std::uint64_t mapped = 0;
  while (session.next()) {
    if (!session.sample())
      continue;
    BOOST_TEST(session.processes().comm(session.sample()->pid, session.sample()->tid) == "sh");
    const auto* code = session.processes().find(session.sample()->pid, session.sample()->ip);
    mapped += code != nullptr ? 1 : 0;
  }
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().samples > 3u);
  BOOST_TEST(mapped > 0u);
  BOOST_TEST(session.counts().out_of_order == 0u);
}

BOOST_AUTO_TEST_CASE(a_target_is_needed_and_one_is_enough) {
  BOOST_TEST(
      refusal({}) ==
      "nothing to record: give a command, or a target (--pid, --tid, --cpu, --all, --cgroup)");
  BOOST_TEST(refusal({"-a", "-p", "1"}) == "choose one target: --pid/--tid, --all or --cgroup");
  BOOST_TEST(refusal({"-a", "--cgroup", "x", "ls"}) ==
             "choose one target: --pid/--tid, --all or --cgroup");
}

BOOST_AUTO_TEST_CASE(numbers_are_taken_at_their_word) {
  BOOST_TEST(refusal({"-p", "12,-1"}) == "--pid: not a process or thread number: '-1'");
  BOOST_TEST(refusal({"-p", ""}) == "--pid: not a process or thread number: ''");
  BOOST_TEST(refusal({"-t", "0"}) == "--tid: not a process or thread number: '0'");
  BOOST_TEST(refusal({"-F", "0", "-a"}) == "--freq: neither a frequency in Hz nor max: '0'");
  BOOST_TEST(refusal({"-F", "99.5", "-a"}) == "--freq: neither a frequency in Hz nor max: '99.5'");
  BOOST_TEST(refusal({"-c", "x", "-a"}) == "--count: not a period: 'x'");
  BOOST_TEST(refusal({"-F", "9", "-c", "9", "-a"}) == "--freq, --count: cannot be combined");
  BOOST_TEST(refusal({"--wakers", "-a"}) ==
             "--wakers needs --event cpu,waits; for waits alone: offcpu --wakers");
  BOOST_TEST(refusal({"--locks", "-e", "cpu", "-a"}) ==
             "--locks needs --event cpu,waits; for waits alone: offcpu --locks");
  BOOST_TEST(refusal({"-e", "cpu,waits", "--engine", "ptrace", "-p", "1"}) ==
             "--event waits needs --engine bpf or perf");
  BOOST_TEST(refusal({"-e", "cpu,waits", "--engine", "perf", "--wakers", "-a"}) ==
             "--wakers needs --engine bpf");
  BOOST_TEST(refusal({"-e", "cpu,waits", "--stack-size", "8192", "-a"}) ==
             "--event waits, --stack-size: only with --engine perf: bpf copies no stacks");
  BOOST_TEST(refusal({"-d", "0", "-a"}) == "--duration: not a number of seconds: '0'");
  BOOST_TEST(refusal({"-d", "1.", "-a"}) == "--duration: not a number of seconds: '1.'");
  BOOST_TEST(refusal({"-m", "100", "-a"}) ==
             "--mmap-pages: not a power of two up to 1048576: '100'");
  BOOST_TEST(refusal({"-C", "3-1"}) == "--cpu: not a list of CPUs: '3-1'");
  BOOST_TEST(refusal({"-e", "nonsense", "-a"}) ==
             "--event: no such event: 'nonsense'; perf list shows all");
  BOOST_TEST(refusal({"--call-graph", "magic", "-a"}) ==
             "--call-graph: not one of auto, dwarf, fp, none: 'magic'");
  BOOST_TEST(refusal({"--user-only", "--kernel-only", "-a"}) ==
             "--user-only, --kernel-only: cannot be combined");
}

BOOST_AUTO_TEST_CASE(the_engine_bpf_copies_no_stacks) {
  BOOST_TEST(refusal({"--engine", "magic", "-a"}) ==
             "--engine: not one of auto, best, perf, bpf, signal, ptrace: 'magic'");
  BOOST_TEST(refusal({"--engine", "bpf", "--stack-size", "8192", "-a"}) ==
             "--engine bpf copies no stacks: it does not support --stack-size");
  BOOST_TEST(refusal({"--engine", "bpf", "--keep-stacks", "-a"}) ==
             "--engine bpf copies no stacks: it does not support --keep-stacks");
  BOOST_TEST(refusal({"--engine", "bpf", "--kernel-only", "-a"}) ==
             "--engine bpf walks stacks of programs: it does not support --kernel-only");
  BOOST_TEST(refusal({"--engine", "bpf", "--call-graph", "fp", "-a"}) ==
             "--engine bpf needs --call-graph auto or dwarf");
  BOOST_TEST(refusal({"--engine", "bpf", "-e", "sched:sched_switch", "-a"}) ==
             "--engine bpf cannot sample tracepoints: 'sched:sched_switch'");
}

BOOST_AUTO_TEST_CASE(the_engine_ptrace_samples_time_of_single_processes) {
  const auto refused = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"--engine", "ptrace"});
    return refusal(args);
  };
  const std::string wide =
      "--engine ptrace stops single processes and threads: it does not support --all, --cpu, "
      "--cgroup";
  BOOST_TEST(refused({"-a"}) == wide);
  BOOST_TEST(refused({"-C", "0"}) == wide);
  BOOST_TEST(refused({"-C", "0", "true"}) == wide);
  BOOST_TEST(refused({"-e", "cycles", "-p", "1"}) ==
             "--engine ptrace samples CPU time: it does not support --event 'cycles'");
  BOOST_TEST(refused({"-c", "9", "-p", "1"}) ==
             "--engine ptrace samples CPU time: it does not support --count");
  BOOST_TEST(refused({"--kernel-only", "-p", "1"}) ==
             "--engine ptrace records no kernel stacks: it does not support --kernel-only");
  BOOST_TEST(refused({"--call-graph", "fp", "-p", "1"}) ==
             "--engine ptrace needs --call-graph auto or dwarf");
  BOOST_TEST(refused({"-m", "8", "-p", "1"}) ==
             "--engine ptrace has no rings: it does not support --mmap-pages");
  BOOST_TEST(refused({"--clock", "moon", "-p", "1"}) == "--clock: not one of cpu, wall: 'moon'");
  BOOST_TEST(refused({"--thread", "x", "true"}) ==
             "--engine ptrace follows all threads: it does not support --thread");
}

BOOST_AUTO_TEST_CASE(all_time_is_sampled_by_whoever_can_do_that) {
  BOOST_TEST(refusal({"--engine", "perf", "--clock", "wall", "-p", "1"}) ==
             "--clock wall needs --engine signal or ptrace");
  BOOST_TEST(refusal({"--clock", "wall", "-a"}) ==
             "--clock wall needs --engine signal or ptrace, which stops single processes and "
             "threads: it does not support --all, --cpu, --cgroup");
}

BOOST_AUTO_TEST_CASE(the_engine_signal_samples_a_command_that_it_starts) {
  const auto refused = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"--engine", "signal"});
    return refusal(args);
  };
  const std::string running =
      "--engine signal samples only a command that it starts (pe-record --engine signal -- "
      "COMMAND); use --engine ptrace for running processes";
  BOOST_TEST(refused({"-p", "1"}) == running);
  BOOST_TEST(refused({"-t", "1"}) == running);
  BOOST_TEST(refused({"-a"}) == running);
  BOOST_TEST(refused({"-p", "1", "true"}) == running);
  BOOST_TEST(refused({"-C", "0", "true"}) ==
             "--engine signal samples on all CPUs: it does not support --cpu");
  BOOST_TEST(refused({"-e", "cycles", "true"}) ==
             "--engine signal samples CPU time: it does not support --event 'cycles'");
  BOOST_TEST(refused({"-c", "9", "true"}) ==
             "--engine signal samples CPU time: it does not support --count");
  BOOST_TEST(refused({"--kernel-only", "true"}) ==
             "--engine signal records no kernel stacks: it does not support --kernel-only");
  BOOST_TEST(refused({"--call-graph", "fp", "true"}) ==
             "--engine signal needs --call-graph auto or dwarf");
  BOOST_TEST(refused({"-m", "8", "true"}) ==
             "--mmap-pages: with --engine signal, a thread's ring has 16 to 4096 pages");
  BOOST_TEST(refusal({"--thread", "x", "true"}) == "--thread needs --engine signal");
  BOOST_TEST(refused({"--thread", "", "true"}) == "--thread: not a name or number: ''");
  BOOST_TEST(refused({"--thread", "x,,y", "true"}) == "--thread: not a name or number: ''");
}

BOOST_AUTO_TEST_CASE(the_call_graph_may_have_a_size_as_for_perf) {
  BOOST_TEST(refusal({"--call-graph", "lbr", "-a"}) ==
             "--call-graph: lbr is not supported; use dwarf or fp");
  BOOST_TEST(refusal({"--call-graph", "dwarf,100", "-a"}) ==
             "--call-graph: not between 512 and 65528: '100'");
  BOOST_TEST(refusal({"--call-graph", "dwarf,x", "-a"}) ==
             "--call-graph: not a number of bytes: 'x'");
  BOOST_TEST(refusal({"--call-graph", "fp,8192", "-a"}) ==
             "--call-graph: only dwarf has a size: 'fp,8192'");
  BOOST_TEST(refusal({"--call-graph", "dwarf,8192", "--stack-size", "8192", "-a"}) ==
             "--call-graph dwarf,BYTES, --stack-size: cannot be combined");
  BOOST_TEST(refusal({"--engine", "bpf", "--call-graph", "dwarf,8192", "-a"}) ==
             "--engine bpf copies no stacks: it does not support --call-graph dwarf,BYTES");
}

BOOST_AUTO_TEST_CASE(a_copy_of_a_stack_has_the_size_of_the_call_graph) {
  BOOST_TEST(recorded_attr({"--call-graph", "dwarf,1024", "--keep-stacks", "--", "true"})
                 .sample_stack_user == 1024U);
}

BOOST_AUTO_TEST_CASE(quiet_and_verbose_exclude_each_other) {
  BOOST_TEST(refusal({"-q", "-v", "-a"}) == "--quiet, --verbose: cannot be combined");
}

BOOST_AUTO_TEST_CASE(events_are_checked_before_anything_is_recorded) {
  BOOST_TEST(refusal({"-e", "cycles:x", "true"}) ==
             "--event: 'cycles:x': no such modifiers: 'x': use u, k, h, and p up to three times");
  BOOST_TEST(refusal({"--engine", "ptrace", "-e", "cpu-clock:u", "-p", "1"}) ==
             "--engine ptrace samples CPU time: it does not support --event 'cpu-clock:u'");
}

BOOST_AUTO_TEST_CASE(the_check_stands_alone) {
  BOOST_TEST(refusal({"--check", "-a"}) == "--check accepts no other option and no command");
  BOOST_TEST(refusal({"--check", "true"}) == "--check accepts no other option and no command");
}

BOOST_AUTO_TEST_CASE(a_process_that_does_not_exist_is_named) {
  const auto r = record({"-p", "4194303"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "pe-record: --pid: 4194303: no such process\n");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_named_before_the_command_runs) {
  const auto r = record({"-o", "/nonexistent/x", "sh", "-c", "echo ran >&2"});
  BOOST_TEST(r.status == 125);
  BOOST_TEST(r.err == "pe-record: /nonexistent/x: No such file or directory\n");
}

BOOST_AUTO_TEST_CASE(larger_copies_are_advised_only_if_there_are_any) {
  using pe::recorder::if_cut;
  using pe::recording::Engine;
  pe::recorder::Options options;
  pe::recorder::EngineAdvice with_bpf(options);
  with_bpf.may_use_bpf = true;  // also for users who may not
  options.not_by[Engine::kBpf] = "reason";
  const pe::recorder::EngineAdvice without(options);
  constexpr std::uint64_t kMost = 65'208;  // as the kernel's records allow
  pe::recording::Request request{.stack_bytes = 8192};
  BOOST_TEST(if_cut(request, 8192, with_bpf) == "raise --stack-size");
  request.stack_bytes = {};
  BOOST_TEST(if_cut(request, 8192, with_bpf) == "raise --mmap-pages, or ulimit -l");
  BOOST_TEST(if_cut(request, kMost, without) == "copies cannot be larger");
  BOOST_TEST(if_cut(request, kMost, with_bpf) ==
             "copies cannot be larger: use --engine bpf, which needs none");
  request.may_continue = false;
  BOOST_TEST(if_cut(request, kMost, with_bpf) == "leave out --no-continue");
  request.engine = Engine::kBpf;
  // The other engines, which advise this one, copy hardly more.
  BOOST_TEST(if_cut(request, 61'440, with_bpf) == "copies cannot be larger");
  // The engine signal has a ring of each thread, and always a size of copies.
  request = {.engine = Engine::kSignal, .stack_bytes = 16'384, .ring_pages = 16};
  BOOST_TEST(if_cut(request, 16'384, with_bpf) == "raise --mmap-pages, or ulimit -l");
  BOOST_TEST(if_cut(request, 8192, with_bpf) == "raise --stack-size");
}

BOOST_AUTO_TEST_SUITE_END()
