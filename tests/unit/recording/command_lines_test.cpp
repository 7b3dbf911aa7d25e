// SPDX-License-Identifier: MIT
#include "recording/stream/command_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/stream_writer.h"

using pe::recording::CommandLines;

BOOST_AUTO_TEST_SUITE(command_lines)

namespace {

perf_event_attr attr_with_trailer() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  return attr;
}

struct Made {
  std::uint16_t misc = PERF_RECORD_MISC_COMM_EXEC;
  std::uint64_t time_ns = pe::monotonic_ns();
  std::string comm = pe::stream::comm_of(::getpid(), ::getpid()).value();
};

const auto kOwnPid = static_cast<std::uint32_t>(::getpid());

/// Returns what a record of this process has afterwards, and checks that the rest stays.
pe::stream::CommRecord completed(const Made& made = {}) {
  static std::string kept;  // the result has views
  pe::stream::RecordBuilder builder;
  pe::stream::build_comm(builder, kOwnPid, kOwnPid, made.comm, made.misc);
  builder.pad().add(kOwnPid).add(kOwnPid).add(made.time_ns);
  const std::string bytes(builder.finish());
  pe::Budget budget;
  CommandLines lines(attr_with_trailer(), budget);
  const auto record = lines.completed(pe::stream::view_record(std::as_bytes(std::span(bytes))));
  kept.assign(pe::text_of(record.bytes));
  const auto view = pe::stream::view_record(std::as_bytes(std::span(kept)));
  const auto parsed = pe::stream::parse_comm(view);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->comm == made.comm);
  BOOST_TEST(parsed->is_exec == (made.misc == PERF_RECORD_MISC_COMM_EXEC));
  BOOST_TEST(pe::stream::time_of(view, attr_with_trailer()) == made.time_ns);
  BOOST_TEST(kept.size() % 8 == 0U);
  return *parsed;
}

std::string own_words() {
  std::array<char, 4096> words{};
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const auto size = ::read(file, words.data(), words.size());
  ::close(file);
  return {words.data(), static_cast<std::size_t>(size)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_exec_gets_the_command_line_and_the_parent) {
  const auto named = completed();
  BOOST_TEST(named.command_line == own_words());
  BOOST_TEST(named.parent_pid == static_cast<std::uint32_t>(::getppid()));
}

BOOST_AUTO_TEST_CASE(a_process_that_was_running_gets_them_too) {
  BOOST_TEST(completed({.misc = 0, .time_ns = 0}).command_line == own_words());
}

BOOST_AUTO_TEST_CASE(a_new_name_gets_nothing) {
  BOOST_TEST(completed({.misc = 0}).command_line == "");
}

BOOST_AUTO_TEST_CASE(a_process_that_runs_another_program_by_now_gets_nothing) {
  BOOST_TEST(completed({.comm = "sh"}).command_line == "");
}

BOOST_AUTO_TEST_CASE(a_process_that_started_after_the_record_gets_nothing) {
  BOOST_TEST(completed({.time_ns = 1}).command_line == "");
}

BOOST_AUTO_TEST_CASE(a_process_that_cannot_pay_gets_nothing) {
  pe::stream::RecordBuilder builder;
  const Made made;
  pe::stream::build_comm(builder, kOwnPid, kOwnPid, made.comm, made.misc);
  builder.pad().add(kOwnPid).add(kOwnPid).add(made.time_ns);
  pe::Budget budget;
  budget.spend(kOwnPid, pe::Resource::kCpuNs, 1e12, pe::monotonic_ns());
  CommandLines lines(attr_with_trailer(), budget);
  const std::string bytes(builder.finish());
  const auto record = pe::stream::view_record(std::as_bytes(std::span(bytes)));
  BOOST_TEST(lines.completed(record).bytes.size() == bytes.size());
  BOOST_TEST(budget.losses().size() == 1U);
}

namespace {

struct Written {
  std::uint64_t time_ns = 0;
  bool is_of_next_exec = false;
  std::string comm, words;
  std::uint32_t parent_pid = 0;
};

/// Returns what is written if the kernel's programs send a command line at `sent_ns`, and the
/// kernel's own record of the exec came right after `exec_ns`.
Written written(std::uint64_t exec_ns, std::uint64_t sent_ns) {
  Written all;
  pe::recording::Synthesizer synthesizer(
      attr_with_trailer(), [&all](const pe::stream::Record& record) {
        const auto named = pe::stream::parse_comm(record).value();
        all = {pe::stream::time_of(record, attr_with_trailer()), named.is_of_next_exec,
               std::string(named.comm), std::string(named.command_line), named.parent_pid};
      });
  pe::unwind::SampleRecord record{};
  record.time_ns = sent_ns;
  record.tgid = record.tid = 7;
  record.period = exec_ns;
  record.cookie = 3;
  pe::recording::write_command_line(
      {.record = record, .stack = {}, .name = "cc", .words = std::string_view("cc\0a.c\0", 7)},
      synthesizer);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_command_line_from_the_kernel_precedes_the_record_of_its_exec) {
  const Written soon = written(1000, 50'000);
  BOOST_TEST(soon.time_ns == 1000U);
  BOOST_TEST(soon.is_of_next_exec);
  BOOST_TEST(soon.comm == "cc");
  BOOST_TEST(soon.words == std::string("cc\0a.c\0", 7));
  BOOST_TEST(soon.parent_pid == 3U);
}

BOOST_AUTO_TEST_CASE(a_command_line_that_comes_late_follows_the_record_of_its_exec) {
  const Written late = written(1000, 1000 + pe::recording::kMostExecNs);
  BOOST_TEST(late.time_ns == 1000 + pe::recording::kMostExecNs);
  BOOST_TEST(!late.is_of_next_exec);
}

BOOST_AUTO_TEST_SUITE_END()
