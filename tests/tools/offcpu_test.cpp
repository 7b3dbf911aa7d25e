// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

#include <boost/test/unit_test.hpp>

#include "stream/session.h"
#include "support/run_tool.h"

namespace {

pe::testing::Result run_offcpu(const std::vector<std::string>& args) {
  return pe::testing::run_tool(pe::kOffcpu, args);
}

/// The message of a refused command line, without the tool's name and the pointer to --help.
std::string offcpu_refusal(const std::vector<std::string>& args) {
  const auto r = run_offcpu(args);
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.out == "");
  std::string text = r.err;
  BOOST_TEST(text.starts_with("offcpu: "));
  BOOST_TEST(text.ends_with(" (see --help)\n"));
  return text.substr(8, text.size() - 8 - 14);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(offcpu_tool)

BOOST_AUTO_TEST_CASE(records_how_long_a_command_sleeps) {
  const auto r = run_offcpu({"--min-us", "50000", "--", "/bin/sleep", "0.1"});
  BOOST_TEST(r.status == 0);
  auto input = pe::testing::memory_input(r.out);
  pe::stream::Session session(input);
  std::uint64_t waited_ns = 0;
  while (session.next()) {
    if (!session.sample())
      continue;
    BOOST_TEST(session.event()->name == "offcpu");
    BOOST_TEST(session.event()->unit == "ns");
    BOOST_TEST(session.processes().comm(session.sample()->pid, session.sample()->tid) == "sleep");
    waited_ns += session.sample()->period;
  }
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().out_of_order == 0u);
  BOOST_TEST(waited_ns >= 100'000'000u);
}

BOOST_AUTO_TEST_CASE(a_target_is_needed) {
  BOOST_TEST(offcpu_refusal({}) ==
             "nothing to record: give a command, or a target (--pid, --tid, --all, --cgroup)");
  BOOST_TEST(offcpu_refusal({"-a", "-p", "1"}) ==
             "choose one target: --pid/--tid, --all or --cgroup");
}

BOOST_AUTO_TEST_CASE(options_are_taken_at_their_word) {
  BOOST_TEST(offcpu_refusal({"-a", "--min-us", "x"}) ==
             "--min-us: not a number of microseconds: 'x'");
  BOOST_TEST(offcpu_refusal({"-a", "--max-us", "18446744073709551615"}) ==
             "--max-us: not a number of microseconds: '18446744073709551615'");
  BOOST_TEST(offcpu_refusal({"-a", "--min-us", "2", "--max-us", "1"}) ==
             "--min-us is larger than --max-us");
  BOOST_TEST(offcpu_refusal({"-a", "--state", "S,X"}) ==
             "--state: not one of R, S, D, T, t, I, P: 'X'");
  BOOST_TEST(offcpu_refusal({"-a", "--state", ","}) == "--state: no states: ','");
  BOOST_TEST(offcpu_refusal({"-a", "--user-only", "--kernel-only"}) ==
             "--user-only, --kernel-only: cannot be combined");
  BOOST_TEST(offcpu_refusal({"-a", "--stack-size", "100"}) ==
             "--stack-size: not between 512 and 65528: '100'");
}

BOOST_AUTO_TEST_CASE(what_is_not_built_in_says_so) {
  BOOST_TEST(offcpu_refusal({"-a", "--engine", "magic"}) ==
             "--engine: not one of auto, perf, bpf: 'magic'");
  BOOST_TEST(offcpu_refusal({"-a", "--wakers", "--engine", "perf"}) ==
             "--wakers needs --engine bpf");
  BOOST_TEST(offcpu_refusal({"-a", "--locks", "--engine", "perf"}) == "--locks needs --engine bpf");
  BOOST_TEST(offcpu_refusal({"-a", "--blame", "waiter"}) == "--blame needs --locks");
  BOOST_TEST(offcpu_refusal({"-a", "--locks", "--blame", "nobody"}) ==
             "--blame: not one of holder, waiter: 'nobody'");
  BOOST_TEST(offcpu_refusal({"-a", "--locks", "--state", "D"}) ==
             "--locks, --state: cannot be combined");
  BOOST_TEST(offcpu_refusal({"-a", "--locks", "--held", "--span", "f"}) ==
             "--held, --span: cannot be combined");
  BOOST_TEST(offcpu_refusal({"-a", "--locks", "--kernel-only"}) ==
             "--locks, --kernel-only: cannot be combined");
}

BOOST_AUTO_TEST_CASE(the_bpf_engine_refuses_what_it_cannot_record) {
  const auto r = run_offcpu({"--engine", "bpf", "--cgroup", "/", "-d", "0.1"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "offcpu: --engine bpf: --cgroup needs the perf engine\n");
}

BOOST_AUTO_TEST_CASE(a_process_that_does_not_exist_is_told) {
  const auto r = run_offcpu({"-p", "4194303"});
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "offcpu: --pid: 4194303: no such process\n");
}

BOOST_AUTO_TEST_SUITE_END()
