// Mappings of processes that map all the time, fork, and end.
// SPDX-License-Identifier: MIT
#include "recording/stream/mapped_bytes.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "base/clock.h"
#include "stream/stream_writer.h"

using pe::Budget;
using pe::Resource;
using pe::recording::MappedBytes;

BOOST_AUTO_TEST_SUITE(mapped_bytes)

namespace {

/// No process has this number (PID_MAX_LIMIT of Linux is 4 million).
constexpr std::uint32_t kPid = 5'000'000;
constexpr std::uint64_t kSecond = pe::kNsPerSecond;
constexpr double kRoom = 1'000'000;
constexpr Budget::Limits kLimits = {{{1e9, 30}, {1e9, 1}, {kRoom, 0}, {1e9, 60}}};

class Recording {
 public:
  /// Returns whether the mapping was applied.
  bool map(std::uint64_t start, const std::string& path) {
    builder_.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER)
        .add(kPid)
        .add(kPid)
        .add(start)
        .add(std::uint64_t{4096})
        .add(std::uint64_t{0})
        .add_string(path)
        .pad();
    const auto record = view();
    const bool may_apply = mapped.may_apply(record);
    if (may_apply)
      mapped.apply(record, 0);
    return may_apply;
  }
  void end(std::uint64_t time_ns) {
    builder_.begin(PERF_RECORD_EXIT).add(kPid).add(kPid).add(kPid).add(kPid).add(time_ns);
    mapped.apply(view(), time_ns);
  }
  [[nodiscard]] bool is_known() const { return history.processes().space(kPid) != nullptr; }
  bool may_keep(double bytes) { return budget.may_spend(kPid, Resource::kKeptBytes, bytes, 0); }

  Budget budget{kLimits};
  pe::stream::History history;
  MappedBytes mapped{budget, history};

 private:
  pe::stream::Record view() {
    text_ = builder_.finish();
    return pe::stream::view_record(std::as_bytes(std::span(text_)));
  }
  pe::stream::RecordBuilder builder_;
  std::string text_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_ended_process_is_forgotten_after_a_second_and_gives_its_bytes_back) {
  Recording recording;
  for (std::uint64_t i = 0; i < 2000; ++i)
    BOOST_REQUIRE(recording.map(4096 * (1 + 2 * i), "/a"));
  BOOST_TEST(!recording.may_keep(kRoom / 2));
  recording.end(kSecond);
  BOOST_TEST(!recording.mapped.forget_ended(kSecond + kSecond / 2));
  BOOST_TEST(recording.is_known());
  BOOST_TEST(recording.mapped.forget_ended(3 * kSecond));
  BOOST_TEST(!recording.is_known());
  BOOST_TEST(recording.history.mapping_change().has_value());
  BOOST_TEST(recording.may_keep(kRoom / 2));
}

BOOST_AUTO_TEST_CASE(ever_new_names_of_files_are_limited) {
  Recording recording;
  std::size_t names = 0;
  while (names < 100'000 && recording.map(4096, "/" + std::to_string(names)))
    ++names;
  BOOST_TEST(names > 100U);
  BOOST_TEST(names < 4'000U);  // 250 bytes each, at least
  BOOST_TEST(recording.budget.losses().size() == 1U);
}

BOOST_AUTO_TEST_CASE(mappings_that_replace_each_other_cost_nothing) {
  Recording recording;
  for (int i = 0; i < 20'000; ++i)
    BOOST_REQUIRE(recording.map(4096, i % 2 == 0 ? "/a" : "/b"));
}

BOOST_AUTO_TEST_SUITE_END()
