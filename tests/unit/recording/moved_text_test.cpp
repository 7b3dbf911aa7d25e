// SPDX-License-Identifier: MIT
#include "recording/stream/moved_text.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "objects/mapped_image.h"
#include "stream/proc/maps.h"

using pe::Budget;
using pe::objects::Segment;
using pe::recording::Hole;
using pe::recording::HoleCode;
using pe::recording::LinesWithText;
using pe::recording::MovedText;
using pe::stream::MapsLine;

namespace {

constexpr std::uint64_t kPage = 4096;

/// Three segments as lld makes them: each at another distance from its place in the file.
const std::array<Segment, 3> kSegments{Segment{.file_offset = 0,
                                               .file_bytes = 0x2800,
                                               .svma = 0,
                                               .memory_bytes = 0x2800,
                                               .executable = false},
                                       Segment{.file_offset = 0x2800,
                                               .file_bytes = 0x9000,
                                               .svma = 0x3800,
                                               .memory_bytes = 0x9000,
                                               .executable = true},
                                       Segment{.file_offset = 0xb800,
                                               .file_bytes = 0x1000,
                                               .svma = 0xd800,
                                               .memory_bytes = 0x1000,
                                               .executable = false}};
constexpr std::uint64_t kBias = 0x7000'0000;

MapsLine line(std::uint64_t svma, std::uint64_t end_svma, std::uint64_t file_offset, bool is_code) {
  return {.start = kBias + svma,
          .end = kBias + end_svma,
          .file_offset = file_offset,
          .inode = 7,
          .readable = true,
          .executable = is_code,
          .path = "/bin/program"};
}

Hole hole(std::uint64_t start, std::uint64_t end, const MapsLine& before, const MapsLine& behind) {
  return {.start = kBias + start, .end = kBias + end, .before = before, .behind = behind};
}

/// This program's own text, of which the middle is said to be in anonymous memory.
struct OwnText {
  std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  MapsLine text;
  MapsLine before, made, behind;

  OwnText() {
    pe::stream::for_each_mapping(::getpid(), [&](const MapsLine& map) {
      if (map.executable && map.path == path)
        text = map;
    });
    text.path = path;
    before = behind = text;
    before.end = text.start + kPage;
    behind.start = text.end - kPage;
    behind.file_offset += behind.start - text.start;
    made = {
        .start = before.end, .end = behind.start, .readable = true, .executable = true, .path = {}};
  }
};

std::size_t read_own(std::uint32_t /*pid*/, std::uint64_t avma, std::span<std::byte> into) {
  std::memcpy(into.data(), reinterpret_cast<const void*>(avma),  // NOLINT: an address of ours
              into.size());
  return into.size();
}

/// Passes the lines on, and returns how the middle one comes out.
struct Result {
  MapsLine line;
  std::string path;
  HoleCode code = HoleCode::kUnknown;
};
Result middle_of(const std::vector<MapsLine>& lines, const MovedText::ReadMemory& read) {
  Budget budget;
  MovedText text(budget, read);
  std::vector<Result> passed;
  const LinesWithText::OnLine on_line = [&](const MapsLine& map, HoleCode code) {
    passed.push_back({map, std::string(map.path), code});
  };
  LinesWithText with_text(&text, ::getpid(), on_line);
  for (const MapsLine& map : lines)
    with_text.take(map);
  with_text.finish();
  BOOST_REQUIRE(passed.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    BOOST_TEST(passed[i].line.start == lines[i].start);
  return passed[lines.size() / 2];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(moved_text)

BOOST_AUTO_TEST_CASE(text_in_a_hole_has_its_place_in_the_file) {
  const auto before = line(0x3000, 0x5000, 0x2000, true);
  const auto behind = line(0x9000, 0xd000, 0x8000, true);
  BOOST_TEST(offset_of_text(kSegments, hole(0x5000, 0x9000, before, behind)).value() == 0x4000u);
}

BOOST_AUTO_TEST_CASE(a_whole_segment_may_have_moved) {
  const auto before = line(0, 0x3000, 0, false);
  const auto behind = line(0xd000, 0xf000, 0xb000, false);
  BOOST_TEST(offset_of_text(kSegments, hole(0x3000, 0xd000, before, behind)).value() == 0x2000u);
}

BOOST_AUTO_TEST_CASE(code_beyond_the_segments_is_no_text) {
  const auto before = line(0, 0x3000, 0, false);
  const auto behind = line(0xd000, 0xf000, 0xb000, false);
  BOOST_TEST(!offset_of_text(kSegments, hole(0x2000, 0x5000, before, behind)));
  BOOST_TEST(!offset_of_text(kSegments, hole(0x9000, 0xe000, before, behind)));
  BOOST_TEST(!offset_of_text(kSegments, hole(0x9000, 0x9000, before, behind)));
}

BOOST_AUTO_TEST_CASE(the_mappings_around_a_hole_must_be_of_one_image) {
  const auto before = line(0x3000, 0x5000, 0x2000, true);
  auto behind = line(0x9000, 0xd000, 0x8000, true);
  behind.start += kPage;  // of an image that was loaded a page higher
  BOOST_TEST(!offset_of_text(kSegments, hole(0x5000, 0x9000, before, behind)));
  behind = line(0x9000, 0xd000, 0x8000, false);  // where the file has code
  BOOST_TEST(!offset_of_text(kSegments, hole(0x5000, 0x9000, before, behind)));
  BOOST_TEST(!offset_of_text({}, hole(0x5000, 0x9000, before, before)));
}

BOOST_AUTO_TEST_CASE(a_hole_with_the_bytes_of_the_file_is_a_mapping_of_it) {
  const OwnText own;
  const Result made = middle_of({own.before, own.made, own.behind}, read_own);
  BOOST_CHECK(made.code == HoleCode::kText);
  BOOST_TEST(made.path == own.path);
  BOOST_TEST(made.line.inode == own.text.inode);
  BOOST_TEST(made.line.file_offset == own.text.file_offset + kPage);
}

BOOST_AUTO_TEST_CASE(a_hole_of_several_parts_is_one_text) {
  const OwnText own;
  auto first = own.made, second = own.made;
  first.end = second.start = own.made.start + kPage;
  const Result made = middle_of({own.before, first, second, own.behind}, read_own);
  BOOST_TEST(made.path == own.path);
  BOOST_TEST(made.line.file_offset == own.text.file_offset + 2 * kPage);
}

BOOST_AUTO_TEST_CASE(a_few_bytes_may_differ) {
  const OwnText own;
  const Result made =
      middle_of({own.before, own.made, own.behind}, [](auto pid, auto avma, auto into) {
        const std::size_t bytes = read_own(pid, avma, into);
        std::ranges::fill(into.first(bytes / 10), std::byte{0xcc});
        return bytes;
      });
  BOOST_CHECK(made.code == HoleCode::kText);
}

BOOST_AUTO_TEST_CASE(other_bytes_are_other_code) {
  const OwnText own;
  const Result made =
      middle_of({own.before, own.made, own.behind}, [](auto /*pid*/, auto /*avma*/, auto into) {
        std::ranges::fill(into, std::byte{0xcc});
        return into.size();
      });
  BOOST_CHECK(made.code == HoleCode::kOther);
  BOOST_TEST(made.path == pe::stream::kNoMovedText);
  BOOST_TEST(made.line.inode == 0u);
}

BOOST_AUTO_TEST_CASE(nothing_but_zeros_has_not_been_copied_yet) {
  const OwnText own;
  const Result made =
      middle_of({own.before, own.made, own.behind}, [](auto /*pid*/, auto /*avma*/, auto into) {
        std::ranges::fill(into, std::byte{0});
        return into.size();
      });
  BOOST_CHECK(made.code == HoleCode::kUnknown);
  BOOST_TEST(made.path == "");
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_read_is_not_compared) {
  const OwnText own;
  const Result made = middle_of({own.before, own.made, own.behind},
                                [](auto /*pid*/, auto /*avma*/, auto /*into*/) { return 0; });
  BOOST_CHECK(made.code == HoleCode::kText);
  BOOST_TEST(made.path == own.path);
}

BOOST_AUTO_TEST_CASE(code_between_two_files_is_no_text) {
  const OwnText own;
  auto other = own.behind;
  ++other.inode;
  const Result made = middle_of({own.before, own.made, other}, read_own);
  BOOST_CHECK(made.code == HoleCode::kOther);
  BOOST_TEST(made.path == "");  // it could not be taken for text
}

BOOST_AUTO_TEST_CASE(a_file_that_is_gone_is_not_believed) {
  OwnText own;
  own.before.inode = own.behind.inode = own.text.inode + 1;  // not that of the path
  const Result made = middle_of({own.before, own.made, own.behind}, read_own);
  BOOST_CHECK(made.code == HoleCode::kUnknown);
  BOOST_TEST(made.path == "");
}

BOOST_AUTO_TEST_CASE(a_process_that_cannot_pay_is_not_examined) {
  const OwnText own;
  Budget budget;
  budget.end(0);
  MovedText text(budget, read_own);
  Hole middle{
      .start = own.made.start, .end = own.made.end, .before = own.before, .behind = own.behind};
  BOOST_CHECK(text.examine(::getpid(), middle) == HoleCode::kUnknown);
}

BOOST_AUTO_TEST_CASE(new_memory_over_no_file_is_not_examined) {
  Budget budget;
  MovedText text(budget, read_own);
  pe::stream::AddressSpace known;
  pe::stream::MmapRecord map;
  map.pid = static_cast<std::uint32_t>(::getpid());
  map.start = 0x1000;
  map.size = 0x1000;
  map.executable = true;
  map.path = "//anon";
  BOOST_CHECK(text.examine(map, known) == HoleCode::kUnknown);
}

BOOST_AUTO_TEST_CASE(new_code_that_is_in_no_hole_by_now_is_other_code) {
  Budget budget;
  MovedText text(budget, read_own);
  const OwnText own;
  const pe::stream::MappedFile file{.path = "/lib/gone.so", .inode = 5};
  pe::stream::AddressSpace known;
  known.map({.start = own.text.start, .end = own.text.end, .file_offset = 0, .file = &file});
  pe::stream::MmapRecord map;
  map.pid = static_cast<std::uint32_t>(::getpid());
  map.start = own.text.start + kPage;
  map.size = kPage;
  map.executable = true;
  map.path = "//anon";
  // /proc shows a file at that address: the memory is gone.
  BOOST_CHECK(text.examine(map, known) == HoleCode::kUnknown);
}

BOOST_AUTO_TEST_SUITE_END()
