// SPDX-License-Identifier: MIT
#include "names/jit_map.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/costly.h"
#include "support/temp_dir.h"

namespace {

using pe::names::JitMap;
using pe::names::JitMapFailure;
using pe::names::JitMapFile;
using pe::testing::TempDir;

JitMap map_of(const std::vector<std::string>& lines) {
  JitMap map;
  for (const std::string& line : lines)
    map.add_line(line);
  return map;
}

std::string at(const JitMap& map, std::uint64_t avma) {
  const auto symbol = map.find(avma);
  return symbol ? fmt::format("{}+{:x}", symbol->name, symbol->offset) : "-";
}

JitMapFile opened(const std::string& path) {
  auto result = JitMapFile::open(path, ::geteuid());
  BOOST_REQUIRE(std::holds_alternative<JitMapFile>(result));
  return std::move(std::get<JitMapFile>(result));
}

JitMapFailure failure_of(const std::string& path, uid_t owner) {
  const auto result = JitMapFile::open(path, owner);
  BOOST_REQUIRE(std::holds_alternative<JitMapFailure>(result));
  return std::get<JitMapFailure>(result);
}

void append(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(jit_map)

BOOST_AUTO_TEST_CASE(finds_the_entry_that_covers_an_address) {
  const JitMap map = map_of({"1000 10 LazyCompile:~foo /a b.js:1", "0x2000 0x8 bar"});
  BOOST_TEST(at(map, 0xfff) == "-");
  BOOST_TEST(at(map, 0x1000) == "LazyCompile:~foo /a b.js:1+0");
  BOOST_TEST(at(map, 0x100f) == "LazyCompile:~foo /a b.js:1+f");
  BOOST_TEST(at(map, 0x1010) == "-");
  BOOST_TEST(at(map, 0x2007) == "bar+7");
}

BOOST_AUTO_TEST_CASE(later_entries_hide_earlier_ones) {
  JitMap map = map_of({"1000 100 old", "1040 20 middle"});
  BOOST_TEST(at(map, 0x103f) == "old+3f");
  BOOST_TEST(at(map, 0x1040) == "middle+0");
  BOOST_TEST(at(map, 0x1060) == "old+60");
  map.add_line("1000 100 new");
  BOOST_TEST(at(map, 0x1050) == "new+50");
  map.add_line("f80 100 before");
  BOOST_TEST(at(map, 0x107f) == "before+ff");
  BOOST_TEST(at(map, 0x1080) == "new+80");
  map.add_line("10f0 100 after");
  BOOST_TEST(at(map, 0x10ef) == "new+ef");
  BOOST_TEST(at(map, 0x10f0) == "after+0");
}

BOOST_AUTO_TEST_CASE(agrees_with_searching_from_the_end) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same every time
  JitMap map;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
  for (int i = 0; i < 2000; ++i) {
    entries.emplace_back(random() % 5000, 1 + random() % (i % 10 == 0 ? 2000 : 30));
    map.add_line(fmt::format("{:x} {:x} f{}", entries.back().first, entries.back().second, i));
    const std::uint64_t avma = random() % 7000;
    std::string expected = "-";
    for (std::size_t k = entries.size(); k-- > 0 && expected == "-";)
      if (avma >= entries[k].first && avma - entries[k].first < entries[k].second)
        expected = fmt::format("f{}+{:x}", k, avma - entries[k].first);
    BOOST_TEST(at(map, avma) == expected);
  }
}

BOOST_AUTO_TEST_CASE(bad_lines_are_counted) {
  const JitMap map =
      map_of({"", "1000", "1000 10", "1000 10 ", "xyz 10 f", "1000 xyz f", "-1000 10 f", "1000 0 f",
              "11112222333344445 10 f", "ffffffffffffffff 10 f", "0 ffffffffffffffff everything",
              "1000 10 " + std::string(20'000, 'x'), " 1000 10 f"});
  BOOST_TEST(map.size() == 0U);
  BOOST_TEST(map.bad_lines() == 13U);
}

BOOST_AUTO_TEST_CASE(the_last_bytes_of_the_address_space_can_be_covered) {
  const JitMap map = map_of({"fffffffffffffff0 f end"});
  BOOST_TEST(at(map, 0xfffffffffffffffe) == "end+e");
  BOOST_TEST(at(map, 0xffffffffffffffff) == "-");
}

BOOST_AUTO_TEST_CASE(a_million_entries_are_no_trouble, *pe::tests::costly()) {
  JitMap map;
  for (std::uint64_t i = 0; i < 1'000'000; ++i)
    map.add_line(fmt::format("{:x} 40 f{}", 0x7f0000000000 + i * 0x40, i));
  BOOST_TEST(map.size() == 1'000'000U);
  BOOST_TEST(at(map, 0x7f0000000000 + 123'456 * 0x40 + 5) == "f123456+5");
}

BOOST_AUTO_TEST_CASE(reads_what_is_appended) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n");
  JitMapFile file = opened(path);
  BOOST_TEST(at(file.map(), 0x1000) == "a+0");
  BOOST_TEST(!file.refresh());
  append(path, "2000 10 b\n1000 10 c\n");
  BOOST_TEST(file.refresh());
  BOOST_TEST(at(file.map(), 0x2000) == "b+0");
  BOOST_TEST(at(file.map(), 0x1000) == "c+0");
  BOOST_TEST(file.map().bad_lines() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_appended_is_told) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n");
  JitMapFile file = opened(path);
  std::string changes;
  const auto on_change = [&](std::uint64_t start, std::uint64_t end) {
    changes += fmt::format("{:x}-{:x} ", start, end);
  };
  append(path, "1008 10 b\nnonsense\n2000 8 c");
  BOOST_TEST(file.refresh(on_change));
  BOOST_TEST(changes == "1008-1018 2000-2008 ");
  BOOST_TEST(!file.refresh(on_change));
  std::filesystem::resize_file(path, 10);
  changes.clear();
  BOOST_TEST(file.refresh(on_change));
  BOOST_TEST(changes == "0-ffffffffffffffff 1000-1010 ");
}

BOOST_AUTO_TEST_CASE(a_line_that_is_still_being_written_is_completed) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n20");
  JitMapFile file = opened(path);
  BOOST_TEST(file.map().bad_lines() == 0U);
  append(path, "00 10 na");
  file.refresh();
  BOOST_TEST(at(file.map(), 0x2000) == "na+0");
  append(path, "me\n");
  file.refresh();
  BOOST_TEST(at(file.map(), 0x2000) == "name+0");
  BOOST_TEST(file.map().bad_lines() == 0U);
}

BOOST_AUTO_TEST_CASE(a_file_that_became_shorter_is_read_anew) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n2000 10 b\n");
  JitMapFile file = opened(path);
  std::ofstream(path, std::ios::trunc) << "3000 10 c\n";
  BOOST_TEST(file.refresh());
  BOOST_TEST(at(file.map(), 0x1000) == "-");
  BOOST_TEST(at(file.map(), 0x3000) == "c+0");
}

BOOST_AUTO_TEST_CASE(a_line_without_end_is_one_bad_line) {
  const TempDir dir;
  const JitMapFile file =
      opened(dir.file("perf-1.map", "1000 10 " + std::string(3'000'000, 'x') + "\n2000 10 b\n"));
  BOOST_TEST(file.map().bad_lines() == 1U);
  BOOST_TEST(file.map().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_file_beyond_the_limit_is_cut, *pe::tests::costly()) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n");
  JitMapFile file = opened(path);
  BOOST_TEST(!file.is_cut());
  BOOST_REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0);
  file.refresh();
  BOOST_TEST(file.is_cut());
  BOOST_TEST(at(file.map(), 0x1000) == "a+0");
}

BOOST_AUTO_TEST_CASE(links_fifos_and_strangers_files_are_refused) {
  const TempDir dir;
  const std::string path = dir.file("perf-1.map", "1000 10 a\n");
  const uid_t self = ::geteuid();
  BOOST_CHECK(failure_of(dir / "perf-2.map", self) == JitMapFailure::kMissing);
  BOOST_CHECK(failure_of(path, self + 1) == JitMapFailure::kWrongOwner);
  std::filesystem::create_symlink(path, dir / "perf-3.map");
  BOOST_CHECK(failure_of(dir / "perf-3.map", self) == JitMapFailure::kNotRegular);
  const std::string fifo = dir / "perf-4.map";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_CHECK(failure_of(fifo, self) == JitMapFailure::kNotRegular);
}

BOOST_AUTO_TEST_SUITE_END()
