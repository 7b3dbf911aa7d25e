// The folder of segments that `pe-record --keep` writes, and how it is read.
// SPDX-License-Identifier: MIT
#include "recording/kept/kept_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recording/kept/slow_calls.h"
#include "stream/segments.h"
#include "stream/session.h"
#include "support/stream_builder.h"
#include "support/string_output.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using pe::recording::KeptOutput;
using pe::testing::StreamBuilder;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(kept_output)

namespace {

constexpr std::uint64_t kMinuteNs = 60'000'000'000, kMegabyte = 1U << 20;

/// Writes a stream record by record, as a recorder does.
void write(pe::Output& out, const StreamBuilder& stream) {
  std::string_view left = stream.text();
  const auto take = [&](std::size_t bytes) {
    out.write(left.substr(0, bytes));
    left.remove_prefix(bytes);
  };
  take(8);
  take(8);
  while (!left.empty()) {
    perf_event_header header;
    std::memcpy(&header, left.data(), sizeof header);
    take(header.size);
  }
}

/// Adds samples that cannot be compressed: more than one piece.
void add_samples(StreamBuilder& stream, std::uint64_t& time_ns, std::uint32_t pid) {
  static std::mt19937_64 random(1);
  for (int i = 0; i < 6'000; ++i) {
    std::vector<std::uint64_t> chain(20);
    std::ranges::generate(chain, [] { return random() >> 20U; });
    time_ns += 1000;
    stream.sample({.time_ns = time_ns, .pid = pid, .tid = pid, .chain = chain});
  }
  stream.earlier_round();
}

struct Found {
  std::map<std::string, std::size_t> samples;  ///< by the thread's name
  std::size_t mapped = 0;                      ///< samples whose process has its mapping
  std::size_t lost = 0, left_out = 0;
  std::string damage;
};
Found read(const std::string& folder) {
  Found found;
  pe::Input input = pe::Input::open(folder, 0);
  pe::stream::Session session(input);
  while (session.next())
    if (const auto& sample = session.sample()) {
      ++found.samples[session.processes().comm(sample->pid, sample->tid)];
      found.mapped += session.processes().find(sample->pid, 0x1000) != nullptr ? 1 : 0;
    }
  found.damage = session.damage();
  found.lost = session.counts().lost;
  found.left_out = session.counts().left_out_segments;
  return found;
}

std::vector<std::string> names(const std::string& folder) {
  return pe::Input::open(folder, 0).segments();
}

/// A recording of a parent and its child, as `rounds` pieces of 6,000 samples of each.
StreamBuilder two_processes(std::uint64_t& time_ns, int rounds) {
  StreamBuilder stream;
  stream.event().clock(1, 1);
  stream.comm(0, 1, 1, "parent").map(0, 1, 0x1000, 0x1000, 0, "/parent");
  for (int i = 0; i < rounds; ++i)
    add_samples(stream, time_ns, 1);
  return stream;
}

void ignore(const std::string& /*line*/) {}

}  // namespace

BOOST_AUTO_TEST_CASE(segments_are_read_as_one_stream_and_each_knows_the_processes) {
  const TempDir dir;
  const std::string folder = dir / "kept";
  std::uint64_t time_ns = 100;
  {
    KeptOutput out(folder, {.ns = kMinuteNs, .bytes = 256 * kMegabyte}, ignore);
    StreamBuilder stream = two_processes(time_ns, 30);
    stream.round();
    write(out, stream);
    out.flush();
  }
  const Found all = read(folder);
  BOOST_TEST(all.damage == "");
  BOOST_TEST(all.samples.at("parent") == 180'000U);
  BOOST_TEST(all.mapped == 180'000U);
  BOOST_TEST(all.left_out == 0U);
  const auto before = names(folder);
  BOOST_TEST_REQUIRE(before.size() >= 3U);
  // What is known of the processes is also in the segments that are left.
  BOOST_TEST(::unlink((folder + "/" + before.front()).c_str()) == 0);
  const Found rest = read(folder);
  BOOST_TEST(rest.damage == "");
  BOOST_TEST_REQUIRE(rest.samples.size() == 1U);
  BOOST_TEST(rest.samples.at("parent") < 180'000U);
  BOOST_TEST(rest.mapped == rest.samples.at("parent"));
}

BOOST_AUTO_TEST_CASE(a_segment_knows_forked_processes_threads_and_later_programs) {
  using pe::recording::SegmentState;
  SegmentState state;
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "parent").map(0, 1, 0x1000, 0x1000, 0, "/parent");
  stream.fork(5, 2, 1).comm(6, 2, 2, "child", true).map(7, 2, 0x5000, 0x1000, 0, "/child");
  stream.fork(8, 3, 1);
  stream.fork(9, 4, 1).exit(10, 4, 4);
  stream.map(11, 1, 0x9000, 0x1000, 0, "/later").map(12, 1, 0x9000, 0x1000, 0, "/over");
  pe::ByteReader reader(std::as_bytes(std::span(stream.text())).subspan(16));
  while (const auto record = pe::stream::take_record(reader))
    state.follow(*record);
  std::string text(stream.text().substr(0, 16));
  state.append_recording(text);
  state.append_processes(text);
  const TempDir dir;
  pe::Input input = pe::Input::open(dir.file("state.pe", text), 0);
  pe::stream::Session session(input);
  while (session.next()) {
  }
  const auto& processes = session.processes();
  const auto path_at = [&](std::uint32_t pid, std::uint64_t avma) {
    const auto* mapping = processes.find(pid, avma);
    return mapping == nullptr ? std::string() : mapping->file->path;
  };
  BOOST_TEST(processes.comm(1, 1) == "parent");
  BOOST_TEST(path_at(1, 0x1000) == "/parent");
  BOOST_TEST(path_at(1, 0x9000) == "/over");
  BOOST_TEST(processes.comm(2, 2) == "child");
  BOOST_TEST(path_at(2, 0x1000) == "");
  BOOST_TEST(path_at(2, 0x5000) == "/child");
  BOOST_TEST(processes.comm(3, 3) == "parent");
  BOOST_TEST(path_at(3, 0x1000) == "/parent");
  BOOST_TEST(path_at(3, 0x9000) == "");
  BOOST_TEST(path_at(4, 0x1000) == "");
  BOOST_TEST(text.find("/later") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_oldest_segments_go_when_there_are_too_many_bytes) {
  const TempDir dir;
  const std::string folder = dir / "kept";
  std::uint64_t time_ns = 100;
  KeptOutput out(folder, {.ns = kMinuteNs, .bytes = 4 * kMegabyte}, ignore);
  write(out, two_processes(time_ns, 12));
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    bytes += entry.file_size();
  BOOST_TEST(bytes <= 4 * kMegabyte);
  const Found kept = read(folder);
  BOOST_TEST(kept.damage == "");
  BOOST_TEST(kept.samples.at("parent") >= 6'000U);
  BOOST_TEST(kept.samples.at("parent") < 72'000U);
  BOOST_TEST(kept.mapped == kept.samples.at("parent"));
}

BOOST_AUTO_TEST_CASE(a_later_recorder_goes_on_in_the_folder) {
  const TempDir dir;
  const std::string folder = dir / "kept";
  std::uint64_t time_ns = 100;
  for (const std::uint64_t id : {7U, 9U}) {
    KeptOutput out(folder, {.ns = kMinuteNs, .bytes = 64 * kMegabyte}, ignore);
    StreamBuilder stream;
    stream.event(id).comm(0, 1, 1, id == 7 ? "first" : "second");
    stream.sample({.time_ns = ++time_ns, .id = id}).round();
    out.write(stream.text());  // held back, then written at once
    out.flush();
    // Two at a time would write the same files.
    BOOST_CHECK_THROW(KeptOutput(folder, {.ns = kMinuteNs, .bytes = kMegabyte}, ignore), pe::Error);
  }
  BOOST_TEST(names(folder).size() == 2U);
  pe::Input input = pe::Input::open(folder, 0);
  pe::stream::Session session(input);
  std::vector<std::string> seen;
  while (session.next())
    if (session.sample())
      seen.push_back(session.event()->name + " " + session.processes().comm(1, 1));
  BOOST_TEST(seen == (std::vector<std::string>{"cpu-clock first", "cpu-clock second"}),
             boost::test_tools::per_element());
  BOOST_TEST(session.events().all().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_damaged_segment_does_not_hide_the_others) {
  const TempDir dir;
  const std::string folder = dir / "kept";
  std::uint64_t time_ns = 100;
  {
    KeptOutput out(folder, {.ns = kMinuteNs, .bytes = 256 * kMegabyte}, ignore);
    write(out, two_processes(time_ns, 30));
  }
  const auto all = names(folder);
  BOOST_TEST_REQUIRE(all.size() >= 3U);
  fs::resize_file(folder + "/" + all[1], fs::file_size(folder + "/" + all[1]) / 2);
  const Found found = read(folder);
  BOOST_TEST(found.damage.starts_with(all[1] + ": truncated at byte "));
  BOOST_TEST(found.left_out == 1U);
  BOOST_TEST(found.samples.at("parent") > 6'000U * 2);
}

BOOST_AUTO_TEST_CASE(a_range_of_time_needs_only_some_segments) {
  const TempDir dir;
  const std::string folder = dir / "kept";
  {
    KeptOutput out(folder, {.ns = kMinuteNs, .bytes = 256 * kMegabyte}, ignore);
    std::uint64_t time_ns = 100;
    write(out, two_processes(time_ns, 30).round());
  }
  pe::Input input = pe::Input::open(folder, 0);
  const std::size_t all = input.segments().size();
  pe::Input last = input.again();
  // Every sample before and after a moment is in the segments that are chosen for it.
  for (const std::uint64_t ms : {1U, 50U, 90U, 135U, 179U}) {
    std::size_t found = 0;
    for (const bool before : {true, false}) {
      pe::Input part = input.again();
      const std::string moment =
          std::to_string(ms / 1000) + "." + std::to_string(1000 + ms).substr(1);
      const auto range = pe::stream::parse_time_range(before ? "," + moment : moment + ",");
      const auto bounds = range.in(pe::stream::choose_times(part, range));
      pe::stream::Session session(part);
      while (session.next())
        if (const auto& sample = session.sample())
          found += bounds.holds(sample->time_ns / 1000) ? 1 : 0;
    }
    BOOST_TEST(found >= 180'000U, ms);
    BOOST_TEST(found <= 180'001U, ms);  // both ranges hold the moment itself
  }
  const auto times = pe::stream::choose_times(last, pe::stream::parse_time_range("-0s"));
  BOOST_TEST(last.segments().size() < all);
  BOOST_TEST(times.first_us > 0U);
  BOOST_CHECK_THROW(pe::stream::choose_times(
                        input, pe::stream::parse_time_range("1970-01-01T00:00,1970-01-02T00:00")),
                    pe::Error);
}

BOOST_AUTO_TEST_CASE(slow_calls_are_reported_when_they_return) {
  StreamBuilder stream;
  stream.event().calls_of("handle \"x\"").comm(0, 1, 1, "app");
  stream.enter({.time_ns = 10, .tid = 2})
      .enter({.time_ns = 20, .tid = 3})
      .leave({.time_ns = 60, .tid = 2});
  stream.leave({.time_ns = 120, .tid = 3}).enter({.time_ns = 200, .tid = 2}).exit(500, 1, 2);
  stream.round();
  for (const bool at_once : {false, true}) {
    int ends[2];
    BOOST_TEST_REQUIRE(::pipe(ends) == 0);
    pe::StringOutput out;
    pe::recording::SlowCallOutput reports(out, {.longer_ns = 60, .fd = ends[1]});
    at_once ? reports.write(stream.text()) : write(reports, stream);
    ::close(ends[1]);
    std::string text(1000, '\0');
    text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
    ::close(ends[0]);
    BOOST_TEST(
        text ==
        "{\"function\":\"handle \\\"x\\\"\",\"pid\":1,\"tid\":3,\"time_ns\":120,\"ns\":100}\n");
    BOOST_TEST(reports.unreported() == 0U);
    BOOST_TEST(out.text == stream.text());
  }
}

BOOST_AUTO_TEST_CASE(folders_that_others_may_use_or_that_have_other_files_are_refused) {
  const TempDir dir;
  const std::string folder = dir / "open";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all | fs::perms::group_read);
  const pe::recording::KeepLimits limits{.ns = kMinuteNs, .bytes = kMegabyte};
  BOOST_CHECK_THROW(KeptOutput(folder, limits, ignore), pe::Error);
  fs::permissions(folder, fs::perms::owner_all);
  { std::ofstream(folder + "/mine") << "text"; }
  BOOST_CHECK_THROW(KeptOutput(folder, limits, ignore), pe::Error);
  fs::create_symlink(dir / "real", dir / "link");
  fs::create_directory(dir / "real");
  BOOST_CHECK_THROW(KeptOutput(dir / "link", limits, ignore), pe::Error);
}

BOOST_AUTO_TEST_SUITE_END()
