// The stream as its readers see it.
// SPDX-License-Identifier: MIT
#include "recording/sigprof/records.h"

#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "stream/session.h"
#include "stream/stream_writer.h"
#include "support/memory_input.h"
#include "support/sample_record.h"
#include "support/string_output.h"

namespace {

using namespace pe;

/// A buffer whose stream can be read when it is flushed.
class Written {
 public:
  Written() {
    sink_.open(::dup(file_.get()), deadline_);
    buffer.begin_in(room_, sink_);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() { sink_.close(); }

  std::string text() {
    buffer.flush();
    std::string text(sink_.written_bytes(), '\0');
    BOOST_REQUIRE(::pread(file_.get(), text.data(), text.size(), 0) ==
                  static_cast<ssize_t>(text.size()));
    return text;
  }

  inprocess::RecordBuffer buffer{};

 private:
  Fd file_ = testing::memory_file("");
  std::uint64_t deadline_ = 0;
  inprocess::Sink sink_{};
  std::vector<std::byte> room_ = std::vector<std::byte>(inprocess::RecordBuffer::kLeastRoom);
};

std::string with_plain_writer(const std::function<void(stream::StreamWriter&)>& write) {
  StringOutput out;
  stream::StreamWriter writer(out);
  write(writer);
  return out.text;
}

std::vector<std::byte> sample(std::size_t stack_bytes, bool is_cut) {
  inprocess::SampleHead head{};
  head.ip = 1234;
  head.pid = 7;
  head.tid = 12;
  head.time_ns = 500;
  head.period_ns = 3000;
  return testing::sample_record(head, stack_bytes, is_cut);
}

constexpr stream::MapsLine kMap{.start = 0x1000,
                                .end = 0x3000,
                                .file_offset = 0x2000,
                                .device_major = 8,
                                .device_minor = 1,
                                .inode = 77,
                                .readable = true,
                                .executable = true,
                                .path = "/with\\012newline"};

}  // namespace

BOOST_AUTO_TEST_SUITE(sigprof_records)

BOOST_AUTO_TEST_CASE(header_and_marks_are_those_of_the_other_writer) {
  Written written;
  written.buffer.add_plain(stream::kMagic);
  written.buffer.add_plain(stream::kPipeHeaderBytes);
  inprocess::write_end(written.buffer);
  BOOST_TEST(written.text() == with_plain_writer([](stream::StreamWriter& writer) {
               writer.write_header();
               writer.write_end();
             }));
}

BOOST_AUTO_TEST_CASE(readers_find_the_event_and_its_losses) {
  Written written;
  inprocess::write_head(written.buffer, {.hz = 250, .stack_bytes = 4096});
  inprocess::write_lost(written.buffer, 41);
  inprocess::write_end(written.buffer);
  Input input = testing::memory_input(written.text());
  stream::Session session(input);
  while (session.next()) {
  }
  BOOST_TEST(session.damage() == "");
  BOOST_REQUIRE(session.events().all().size() == 1U);
  const stream::Event& event = session.events().all().front();
  BOOST_TEST(event.name == "cpu-clock");
  BOOST_TEST(event.unit == "ns");
  BOOST_TEST(event.attr.sample_freq == 250U);
  BOOST_TEST(event.attr.sample_stack_user == 4096U);
  BOOST_TEST(session.counts().lost == 41U);
  BOOST_TEST(session.counts().malformed_records == 0U);
}

BOOST_AUTO_TEST_CASE(readers_find_thread_mapping_and_sample) {
  Written written;
  inprocess::write_head(written.buffer, {});
  const std::array<std::byte, 20> id{std::byte{0xab}};
  inprocess::write_task(written.buffer, PERF_RECORD_FORK, {7, 12, 100});
  inprocess::write_name(written.buffer, {7, 12, 100}, "worker");
  inprocess::write_mapping(written.buffer, {7, 7, 100}, kMap, id);
  for (const bool is_cut : {false, true})
    inprocess::write_sample(written.buffer, stream::view_record(sample(24, is_cut)));
  inprocess::write_end(written.buffer);
  Input input = testing::memory_input(written.text());
  stream::Session session(input);
  std::vector<bool> full;
  while (session.next())
    if (const auto& sample = session.sample()) {
      full.push_back(sample->has_full_copy());
      BOOST_TEST(sample->ip == 1234U);
      BOOST_TEST(sample->pid == 7U);
      BOOST_TEST(sample->tid == 12U);
      BOOST_TEST(sample->period == 3000U);
      BOOST_TEST(sample->user_stack.size() == 24U);
      BOOST_TEST(sample->user_regs.size() == inprocess::kRegisters);
      BOOST_TEST(session.processes().comm(7, 12) == "worker");
      const auto* found = session.processes().find(7, 0x1800);
      BOOST_REQUIRE(found != nullptr);
      BOOST_TEST(found->file->path == "/with\nnewline");
    }
  // That a stack ends where its copy does is to be seen.
  BOOST_TEST(full == (std::vector<bool>{false, true}));
  BOOST_TEST(session.counts().malformed_records == 0U);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_round_is_written_with_the_next_record) {
  Written written;
  inprocess::write_name(written.buffer, {1, 1, 0}, "a");
  const std::string before = written.text();
  written.buffer.begin_round();
  BOOST_TEST(written.text() == before);
  inprocess::write_name(written.buffer, {1, 1, 0}, "a");
  const std::string name = before;
  const std::string round =
      with_plain_writer([](stream::StreamWriter& writer) { writer.write_finished_round(); });
  BOOST_TEST(written.text() == name + round + name);
}

BOOST_AUTO_TEST_CASE(a_buffer_that_is_full_is_written) {
  Written written;
  const std::vector<std::byte> record = sample(60'000, false);
  for (int i = 0; i < 5; ++i) {
    inprocess::write_sample(written.buffer, stream::view_record(record));
    written.buffer.count_sample(2);
  }
  BOOST_TEST(written.text().size() == 5 * record.size());
  BOOST_TEST(written.buffer.written_samples() == 5U);
  BOOST_TEST(written.buffer.written_weight() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()
