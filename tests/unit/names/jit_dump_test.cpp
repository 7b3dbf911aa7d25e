// SPDX-License-Identifier: MIT
#include "names/jit_dump.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "support/costly.h"
#include "support/jit_dump_builder.h"
#include "support/temp_dir.h"

namespace {

using pe::names::JitDump;
using pe::names::JitMapFailure;
using pe::testing::JitDumpBuilder;
using pe::testing::TempDir;

JitDump opened_dump(const std::string& path) {
  auto result = JitDump::open(path, ::geteuid());
  BOOST_REQUIRE(std::holds_alternative<JitDump>(result));
  return std::move(std::get<JitDump>(result));
}

JitMapFailure dump_failure(const std::string& path, uid_t owner = ::geteuid()) {
  const auto result = JitDump::open(path, owner);
  BOOST_REQUIRE(std::holds_alternative<JitMapFailure>(result));
  return std::get<JitMapFailure>(result);
}

/// The address ranges that change when the dump advances to that time.
std::string advance(JitDump& dump, std::uint64_t time_ns) {
  std::string changes;
  dump.advance(time_ns, [&](std::uint64_t start, std::uint64_t end) {
    changes += fmt::format("{:x}-{:x} ", start, end);
  });
  return changes;
}

std::string at(const JitDump& dump, std::uint64_t avma) {
  const auto symbol = dump.find(avma);
  const auto line = dump.line_of(avma);
  return (symbol ? fmt::format("{}+{:x}", symbol->name, symbol->offset) : "-") +
         (line ? fmt::format(" {}:{}", line->file, line->line) : "");
}

/// The unwind information for an address: "start+bytes of code: section".
std::string frames(const JitDump& dump, std::uint64_t avma) {
  const auto found = dump.frames_of(avma);
  if (!found)
    return "-";
  return fmt::format("{:x}+{:x}: {}", found->start, found->code_bytes,
                     std::string_view(reinterpret_cast<const char*>(found->eh_frame.data()),
                                      found->eh_frame.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(jit_dump)

BOOST_AUTO_TEST_CASE(a_name_counts_from_its_time_on) {
  const TempDir dir;
  JitDump dump = opened_dump(dir.file(
      "jit-1.dump",
      JitDumpBuilder().load(10, 0x1000, 0x20, "first").load(20, 0x1000, 0x10, "second").text()));
  BOOST_TEST(advance(dump, 9) == "");
  BOOST_TEST(at(dump, 0x1004) == "-");
  BOOST_TEST(advance(dump, 10) == "1000-1020 ");
  BOOST_TEST(at(dump, 0x1004) == "first+4");
  BOOST_TEST(advance(dump, 19) == "");
  BOOST_TEST(advance(dump, 30) == "1000-1010 ");
  BOOST_TEST(at(dump, 0x1004) == "second+4");
  BOOST_TEST(at(dump, 0x1014) == "first+14");
  BOOST_TEST(at(dump, 0x1020) == "-");
  BOOST_TEST(dump.bad_records() == 0u);
}

BOOST_AUTO_TEST_CASE(times_of_another_clock_are_not_compared) {
  const TempDir dir;
  JitDump dump = opened_dump(
      dir.file("jit-1.dump", JitDumpBuilder(1).load(1ULL << 60, 0x1000, 8, "f").text()));
  BOOST_TEST(advance(dump, 5) == "1000-1008 ");
}

BOOST_AUTO_TEST_CASE(moved_code_keeps_its_name_and_lines) {
  const TempDir dir;
  JitDump dump = opened_dump(dir.file("jit-1.dump", JitDumpBuilder()
                                                        .lines(1, 0x1000, {{0x1008, 7, "a.js"}})
                                                        .load(1, 0x1000, 0x20, "f")
                                                        .move(2, 0x1000, 0x5000, 0x20)
                                                        .move(3, 0x9000, 0x6000, 0x20)
                                                        .text()));
  BOOST_TEST(advance(dump, 2) == "1000-1020 5000-5020 ");
  BOOST_TEST(at(dump, 0x5007) == "f+7");
  BOOST_TEST(at(dump, 0x5009) == "f+9 a.js:7");
  BOOST_TEST(advance(dump, 3) == "");
  BOOST_TEST(dump.bad_records() == 1u);  // there was no function to move
}

BOOST_AUTO_TEST_CASE(lines_belong_to_the_load_behind_them) {
  const TempDir dir;
  JitDump dump = opened_dump(
      dir.file("jit-1.dump", JitDumpBuilder()
                                 .lines(1, 0x1000, {{0x1010, 9, "\xff"}, {0x1000, 4, "a.js"}})
                                 .lines(1, 0x1000, {{0x1010, 9, "a.js"}, {0x1004, 4, "\xff"}})
                                 .load(1, 0x1000, 0x20, "f")
                                 .lines(2, 0x3000, {{0x3000, 1, "b.js"}})
                                 .load(2, 0x2000, 0x20, "g")
                                 .load(3, 0x1000, 0x20, "h")
                                 .text()));
  advance(dump, 2);
  BOOST_TEST(at(dump, 0x1003) == "f+3");
  BOOST_TEST(at(dump, 0x1004) == "f+4 a.js:4");
  BOOST_TEST(at(dump, 0x101f) == "f+1f a.js:9");
  BOOST_TEST(at(dump, 0x2000) == "g+0");
  advance(dump, 3);
  BOOST_TEST(at(dump, 0x1010) == "h+10");
}

BOOST_AUTO_TEST_CASE(call_frame_information_is_that_of_the_next_load) {
  const TempDir dir;
  JitDump dump = opened_dump(dir.file("jit-1.dump", JitDumpBuilder()
                                                        .unwinding(1, "first")
                                                        .load(1, 0x1000, 0x20, "f")
                                                        .load(1, 0x2000, 0x20, "without")
                                                        .unwinding(1, "")
                                                        .load(1, 0x3000, 0x20, "only a header")
                                                        .unwinding(2, "overwritten")
                                                        .unwinding(2, "second")
                                                        .load(2, 0x1010, 0x8, "g")
                                                        .move(3, 0x1010, 0x5000, 0x8)
                                                        .load(4, 0x1000, 0x20, "h")
                                                        .text()));
  advance(dump, 1);
  BOOST_TEST(frames(dump, 0x101f) == "1000+20: first");
  BOOST_TEST(frames(dump, 0x1020) == "-");
  BOOST_TEST(frames(dump, 0x2000) == "-");
  BOOST_TEST(frames(dump, 0x3000) == "-");
  advance(dump, 2);
  BOOST_TEST(frames(dump, 0x100f) == "1000+20: first");
  BOOST_TEST(frames(dump, 0x1010) == "1010+8: second");
  advance(dump, 3);
  BOOST_TEST(frames(dump, 0x5007) == "5000+8: second");
  BOOST_TEST(frames(dump, 0x1010) == "-");
  advance(dump, 4);
  BOOST_TEST(frames(dump, 0x1000) == "-");
  BOOST_TEST(dump.bad_records() == 0u);
}

BOOST_AUTO_TEST_CASE(call_frame_information_beyond_its_record_is_not_read) {
  const TempDir dir;
  const auto numbers = [](std::uint64_t bytes, std::uint64_t header_bytes) {
    const std::uint64_t all[] = {bytes, header_bytes, 0};
    return std::string(reinterpret_cast<const char*>(all), sizeof all) + "12345678";
  };
  JitDump dump = opened_dump(dir.file("jit-1.dump", JitDumpBuilder()
                                                        .record(4, 1, numbers(9, 1))
                                                        .record(4, 1, numbers(1, 2))
                                                        .record(4, 1, numbers(~0ULL, 0))
                                                        .record(4, 1, "short")
                                                        .load(1, 0x1000, 0x20, "f")
                                                        .record(4, 1, numbers(8, 1))
                                                        .load(1, 0x2000, 0x20, "g")
                                                        .text()));
  advance(dump, 1);
  BOOST_TEST(dump.bad_records() == 4u);
  BOOST_TEST(frames(dump, 0x1000) == "-");
  BOOST_TEST(frames(dump, 0x2000) == "2000+20: 1234567");
}

BOOST_AUTO_TEST_CASE(a_dump_is_read_as_it_grows) {
  const TempDir dir;
  const std::string text =
      JitDumpBuilder().load(1, 0x1000, 16, "f").load(2, 0x2000, 16, "g").text();
  const std::string path = dir.file("jit-1.dump", text.substr(0, 40));
  JitDump dump = opened_dump(path);
  std::string changes;
  for (std::size_t size = 41; size <= text.size(); ++size) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text[size - 1];
    changes += advance(dump, 5);
  }
  BOOST_TEST(changes == "1000-1010 2000-2010 ");
  BOOST_TEST(at(dump, 0x2001) == "g+1");
  BOOST_TEST(dump.bad_records() == 0u);
}

BOOST_AUTO_TEST_CASE(a_dump_may_be_opened_before_its_header_is_written) {
  const TempDir dir;
  const std::string text = JitDumpBuilder().load(1, 0x1000, 16, "f").text();
  const std::string path = dir.file("jit-1.dump", "");
  JitDump dump = opened_dump(path);
  BOOST_TEST(dump.is_unfinished());
  std::ofstream(path, std::ios::binary) << text.substr(0, 39);
  BOOST_TEST(advance(dump, 5) == "");
  BOOST_TEST(dump.is_unfinished());
  std::ofstream(path, std::ios::binary) << text;
  BOOST_TEST(advance(dump, 5) == "1000-1010 ");
  BOOST_TEST(dump.bad_records() == 0u);
}

BOOST_AUTO_TEST_CASE(what_turns_out_to_be_no_dump_is_not_read) {
  const TempDir dir;
  const std::string path = dir.file("jit-1.dump", "");
  JitDump dump = opened_dump(path);
  std::ofstream(path) << std::string(200, 'x');
  BOOST_TEST(advance(dump, 5) == "");
  BOOST_TEST(advance(dump, 6) == "");
  BOOST_TEST(dump.bad_records() == 1u);
  BOOST_TEST(!dump.is_unfinished());
}

BOOST_AUTO_TEST_CASE(a_dump_that_ends_within_a_record_is_unfinished) {
  const TempDir dir;
  const std::string whole = JitDumpBuilder().load(1, 0x1000, 16, "f").text();
  const std::string text = JitDumpBuilder().load(1, 0x1000, 16, "f").load(9, 0, 8, "g").text();
  for (std::size_t size = whole.size(); size <= text.size(); ++size) {
    JitDump dump = opened_dump(dir.file("jit-1.dump", text.substr(0, size)));
    advance(dump, 5);
    // At the first size the dump ends after a record; at the last size, a record's time is still to
    // come.
    BOOST_TEST(dump.is_unfinished() == (size != whole.size() && size != text.size()), size);
  }
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_stepped_over_and_counted) {
  const TempDir dir;
  const std::string no_name(48, 'x');
  JitDump dump = opened_dump(dir.file("jit-1.dump", JitDumpBuilder()
                                                        .record(0, 1, "short")
                                                        .record(0, 1, no_name)
                                                        .record(1, 1, "short")
                                                        .record(2, 1, std::string(16, '\xff'))
                                                        .load(1, ~std::uint64_t{0}, 2, "wraps")
                                                        .load(1, 0x1000, 1ULL << 40, "huge")
                                                        .load(1, 0x1000, 0, "without code")
                                                        .record(3, 1, "")
                                                        .record(77, 1, "of the future")
                                                        .load(1, 0x1000, 16, "f")
                                                        .text()));
  advance(dump, 5);
  BOOST_TEST(dump.bad_records() == 6u);
  BOOST_TEST(at(dump, 0x1000) == "f+0");
}

BOOST_AUTO_TEST_CASE(behind_a_record_without_size_nothing_is_read) {
  const TempDir dir;
  const std::string text = JitDumpBuilder().load(1, 0x1000, 16, "f").text();
  JitDump dump = opened_dump(dir.file("jit-1.dump", text + std::string(1000, '\0')));
  advance(dump, 5);
  advance(dump, 5);
  BOOST_TEST(dump.bad_records() == 1u);
  BOOST_TEST(at(dump, 0x1000) == "f+0");
}

BOOST_AUTO_TEST_CASE(a_file_beyond_the_limit_is_cut, *pe::tests::costly()) {
  const TempDir dir;
  const std::string path = dir.file("jit-1.dump", JitDumpBuilder().load(1, 0x1000, 16, "f").text());
  std::filesystem::resize_file(path, JitDump::kMaxFileBytes + 1);
  JitDump dump = opened_dump(path);
  advance(dump, 5);
  BOOST_TEST(dump.is_cut());
  BOOST_TEST(at(dump, 0x1000) == "f+0");
}

BOOST_AUTO_TEST_CASE(links_fifos_strangers_files_and_other_files_are_refused) {
  const TempDir dir;
  const std::string path = dir.file("jit-1.dump", JitDumpBuilder().text());
  BOOST_CHECK(dump_failure(dir / "none") == JitMapFailure::kMissing);
  BOOST_CHECK(dump_failure(path, ::geteuid() + 1) == JitMapFailure::kWrongOwner);
  BOOST_REQUIRE(::symlink(path.c_str(), (dir / "link").c_str()) == 0);
  BOOST_CHECK(dump_failure(dir / "link") == JitMapFailure::kNotRegular);
  BOOST_REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  BOOST_CHECK(dump_failure(dir / "fifo") == JitMapFailure::kNotRegular);
  std::string other_order = JitDumpBuilder().text();
  std::reverse(other_order.begin(), other_order.begin() + 4);
  BOOST_CHECK(dump_failure(dir.file("swapped", other_order)) == JitMapFailure::kUnreadable);
}

BOOST_AUTO_TEST_SUITE_END()
