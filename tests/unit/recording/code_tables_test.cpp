// SPDX-License-Identifier: MIT
#include "recording/bpf/code_tables.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "recording/bpf/kernel_rule.h"
#include "stream/proc/maps.h"
#include "support/process_records.h"
#include "support/rule_text.h"
#include "support/table_memory.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

BOOST_AUTO_TEST_SUITE(code_tables)

namespace {

using pe::testing::find_mapping;
using pe::testing::look_up;
using pe::testing::ProcessRecords;
using pe::testing::TableMemory;
using pe::testing::test_binary;
using namespace pe;
using namespace pe::unwind;

/// Process numbers that no process has: Linux assigns at most 2^22.
constexpr std::uint32_t kPid = 1U << 30, kChild = kPid + 1, kStranger = kPid + 2;
constexpr std::uint64_t kBase = 0x7f0000000000;

/// A history, and tables that follow it record by record.
struct Followed {
  explicit Followed(const PackedImages::Limits& limits = {}, std::size_t max_processes = 100)
      : memory(max_processes), tables(history, memory, objects::FileMatch::kAny, limits) {}

  void map(std::uint32_t pid, const ProcessRecords::Place& place, const std::string& path) {
    records.map(pid, place, path);
    tables.follow(0);
  }
  void fork(std::uint32_t parent, std::uint32_t child) {
    records.fork(parent, child);
    tables.follow(0);
  }
  void exec(std::uint32_t pid, std::uint64_t time_ns) {
    records.exec(pid);
    tables.follow(time_ns);
  }
  void exit(std::uint32_t pid, std::uint32_t tid) {
    records.exit(pid, tid);
    tables.follow(0);
  }
  /// Publishes the tables and returns the entry of a process; nullptr if there is none.
  const ProcessMappings* process(std::uint32_t pid) {
    tables.publish();
    return memory.process(pid);
  }

  stream::History history;
  TableMemory memory;
  CodeTables tables;
  ProcessRecords records{history};
};

/// The pages of a file's code: `base` is added to the linked addresses.
std::vector<ProcessRecords::Place> code_of(const objects::Image& image, std::uint64_t base) {
  std::vector<ProcessRecords::Place> places;
  for (const objects::Segment& segment : image.segments())
    if (segment.executable)
      places.push_back({.start = base + (segment.svma & ~std::uint64_t{4095}),
                        .size = (segment.memory_bytes + (segment.svma & 4095) + 4095) & ~4095ULL,
                        .file_offset = segment.file_offset & ~std::uint64_t{4095}});
  return places;
}

objects::Image image_of(const std::string& path) {
  auto opened = objects::Image::open(path);
  BOOST_REQUIRE(std::holds_alternative<objects::Image>(opened));
  return std::move(std::get<objects::Image>(opened));
}

/// Maps the code of a file for kPid; `base` is added to the linked addresses.
void map_code(Followed& followed, const std::string& path, std::uint64_t base = kBase) {
  for (const auto& place : code_of(image_of(path), base))
    followed.map(kPid, place, path);
}

RuleEntry expected_entry(unwind::UnwindTable& table, std::uint64_t svma) {
  const unwind::Rule rule = table.rule(svma);
  if (rule.kind() != unwind::RuleKind::kGeneral)
    return entry_of(rule);
  const auto full = table.full_row(svma);
  BOOST_REQUIRE(full);
  return entry_of(full->row, full->is_signal_frame);
}

/// Looks up addresses before, at and after the start of each row.  Returns how many it looked up.
std::size_t check_rows(const Followed& followed, std::uint32_t pid, unwind::UnwindTable& table,
                       const stream::Mapping& mapping) {
  const ProcessMappings* process = followed.memory.process(pid);
  BOOST_REQUIRE(process != nullptr);
  const auto start_svma = table.svma_of_mapping(mapping.file_offset);
  BOOST_REQUIRE(start_svma);
  std::uint32_t number = 0;  // unique for each row
  const auto rows = table.flat_codes([&](const unwind::CfiRow&, bool) { return ++number; }, 0,
                                     std::size_t{1} << 24);
  std::size_t checked = 0;
  for (const auto& row : rows.rows)
    for (const std::uint64_t svma : {rows.base_svma + row.offset - 1, rows.base_svma + row.offset,
                                     rows.base_svma + row.offset + 1}) {
      const std::uint64_t avma = mapping.start + (svma - *start_svma);
      if (svma < *start_svma || avma >= mapping.end)
        continue;
      const auto found = look_up(followed.memory, *process, avma);
      BOOST_REQUIRE(found);
      const RuleEntry wanted = expected_entry(table, svma);
      BOOST_REQUIRE_MESSAGE(*found == wanted, mapping.file->path << " " << std::hex << svma << ": "
                                                                 << to_string(*found) << ", not "
                                                                 << to_string(wanted));
      ++checked;
    }
  return checked;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_row_of_what_this_process_has_mapped_is_found) {
  Followed followed;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  followed.tables.add_target(pid, 5);
  stream::for_each_mapping(::getpid(), [&](const stream::MapsLine& line) {
    if (line.executable)
      followed.map(pid, {line.start, line.end - line.start, line.file_offset},
                   std::string(line.path));
  });
  BOOST_REQUIRE(followed.process(pid) != nullptr);
  std::size_t checked = 0;
  std::size_t files = 0;
  for (const auto& [start, mapping] : followed.history.processes().space(pid)->all()) {
    const auto opened =
        objects::open_mapped_image(::getpid(), mapping, objects::FileMatch::kAny, nullptr);
    const auto* image = std::get_if<objects::Image>(&opened);
    if (image == nullptr)
      continue;
    unwind::UnwindTable table(*image);
    if (!table.has_rules())
      continue;
    ++files;
    checked += check_rows(followed, pid, table, mapping);
  }
  BOOST_TEST(files >= 4U);  // the program, libstdc++, libc, ld.so
  BOOST_TEST(checked > 100'000U);
  const auto statistics = followed.tables.statistics();
  BOOST_TEST(statistics.files.files == files);
  BOOST_TEST(statistics.files.left_out == 0U);
  BOOST_TEST(statistics.rules > 100U);
  BOOST_TEST(statistics.table_bytes > statistics.files.rows * 4);
  BOOST_TEST(describe_losses(statistics) == "");
}

BOOST_AUTO_TEST_CASE(large_files_leave_time_for_other_work) {
  Followed followed;
  followed.tables.add_target(kPid, 5);
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  map_code(followed, own);
  std::size_t calls = 0;
  followed.tables.publish([&calls] { ++calls; });
  BOOST_TEST(calls > 4U);
  BOOST_TEST(calls <= followed.tables.statistics().files.rows / 100);
}

BOOST_AUTO_TEST_CASE(every_row_of_the_test_programs_is_found) {
  for (const char* name : {"libfunctions.so", "debug_frame", "debug_frame_compressed", "inlined"}) {
    Followed followed;
    followed.tables.add_target(kPid, 0);
    map_code(followed, test_binary(name));
    BOOST_REQUIRE(followed.process(kPid) != nullptr);
    unwind::UnwindTable table(image_of(test_binary(name)));
    for (const auto& [start, mapping] : followed.history.processes().space(kPid)->all())
      BOOST_TEST(check_rows(followed, kPid, table, mapping) > 0U, name);
  }
}

BOOST_AUTO_TEST_CASE(a_mapping_of_whole_pages_of_code_is_one) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  map_code(followed, test_binary("libfunctions.so"));
  const auto* process = followed.process(kPid);
  BOOST_REQUIRE(process->count == 1U);
  BOOST_TEST(process->mappings[0].base <= process->mappings[0].start);
  BOOST_TEST(process->left_out == 0U);
}

BOOST_AUTO_TEST_CASE(more_of_a_file_than_its_code_has_no_rows) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  const auto place = code_of(image_of(test_binary("libfunctions.so")), kBase).front();
  followed.map(kPid, {place.start, place.size + 0x10000, place.file_offset},
               test_binary("libfunctions.so"));
  const auto* process = followed.process(kPid);
  BOOST_REQUIRE(process->count == 2U);
  BOOST_TEST(process->mappings[0].end == place.start + place.size);
  BOOST_TEST(process->mappings[1].index == PE_NO_ROWS);
  BOOST_TEST(process->mappings[1].end == place.start + place.size + 0x10000);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_mapped_twice_is_packed_once) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  map_code(followed, test_binary("libfunctions.so"));
  followed.tables.publish();
  const auto bytes = followed.tables.statistics().table_bytes;
  map_code(followed, test_binary("libfunctions.so"), kBase + 0x1000'0000);
  const auto* process = followed.process(kPid);
  BOOST_REQUIRE(process->count == 2U);
  BOOST_TEST(process->mappings[0].index == process->mappings[1].index);
  BOOST_TEST(followed.tables.statistics().table_bytes == bytes);
}

BOOST_AUTO_TEST_CASE(code_without_a_file_has_no_table) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  followed.map(kPid, {kBase + 0x1000, 0x1000, 0}, "//anon");  // continues the previous mapping
  followed.map(kPid, {kBase + 0x3000, 0x1000, 0}, "/nowhere/at/all");
  followed.map(kPid, {kBase + 0x5000, 0x1000, 0}, test_binary("labels.so"));  // without CFI
  const auto* process = followed.process(kPid);
  BOOST_REQUIRE(process->count == 3U);
  for (std::uint32_t i = 0; i < 3; ++i)
    BOOST_TEST(process->mappings[i].index == PE_NO_TABLE);
  BOOST_TEST(process->mappings[0].end == kBase + 0x2000);
  BOOST_TEST(followed.tables.statistics().files.without_rules == 2U);
}

BOOST_AUTO_TEST_CASE(only_targets_and_their_children_are_told) {
  Followed followed;
  followed.tables.add_target(kPid, 42);
  followed.map(kStranger, {kBase, 0x1000, 0}, "//anon");
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  followed.fork(kPid, kChild);
  followed.fork(kStranger, kStranger + 1);
  const auto* child = followed.process(kChild);
  BOOST_REQUIRE(child != nullptr);
  BOOST_TEST(child->count == 1U);
  BOOST_TEST(child->exec_ns == 42U);
  BOOST_TEST(followed.memory.process_count() == 2U);
}

BOOST_AUTO_TEST_CASE(another_program_has_other_mappings) {
  Followed followed;
  followed.tables.add_target(kPid, 42);
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  const auto generation = followed.process(kPid)->generation;
  BOOST_TEST(generation > 0U);
  followed.exec(kPid, 50);
  const auto* process = followed.process(kPid);
  BOOST_TEST(process->count == 0U);
  BOOST_TEST(process->exec_ns == 50U);
  BOOST_TEST(process->generation > generation);
  // The mappings in /proc were read after this exec, whose record arrives late.
  followed.tables.add_target(kChild, 70);
  followed.exec(kChild, 60);
  BOOST_TEST(followed.process(kChild)->exec_ns == 70U);
}

BOOST_AUTO_TEST_CASE(each_change_has_a_number_of_its_own_and_no_change_none) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  const auto first = followed.process(kPid)->generation;
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  BOOST_TEST(followed.process(kPid)->generation == first);
  BOOST_TEST(followed.memory.times_set() == 1U);
  followed.map(kPid, {kBase + 0x5000, 0x1000, 0}, "//anon");
  BOOST_TEST(followed.process(kPid)->generation == first + 1);
  followed.fork(kPid, kChild);
  BOOST_TEST(followed.process(kChild)->generation == first + 2);
  BOOST_TEST(followed.memory.times_set() == 3U);
}

BOOST_AUTO_TEST_CASE(mappings_are_sorted_and_replaced_where_they_overlap) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  followed.map(kPid, {kBase + 0x10000, 0x4000, 0}, "//anon");
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  map_code(followed, test_binary("libfunctions.so"), kBase + 0x11000);
  const auto* process = followed.process(kPid);
  BOOST_REQUIRE(process->count >= 3U);
  for (std::uint32_t i = 1; i < process->count; ++i)
    BOOST_TEST(process->mappings[i - 1].end <= process->mappings[i].start);
}

BOOST_AUTO_TEST_CASE(a_process_that_has_ended_is_forgotten) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  followed.map(kPid, {kBase, 0x1000, 0}, "//anon");
  BOOST_CHECK(followed.process(kPid) != nullptr);
  followed.exit(kPid, kPid + 9);  // another thread of the process
  BOOST_CHECK(followed.process(kPid) != nullptr);
  followed.exit(kPid, kPid);
  BOOST_CHECK(followed.memory.process(kPid) != nullptr);  // the caller may still read samples
  BOOST_CHECK(followed.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_process_whose_first_thread_alone_has_ended_is_not_forgotten) {
  Followed followed;
  const auto pid = static_cast<std::uint32_t>(::getpid());  // this process, which runs
  followed.tables.add_target(pid, 0);
  followed.map(pid, {kBase, 0x1000, 0}, "//anon");
  followed.exit(pid, pid);
  BOOST_CHECK(followed.process(pid) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_process_that_nobody_has_waited_for_is_forgotten) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(0);
  siginfo_t info{};
  BOOST_REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  Followed followed;
  const auto pid = static_cast<std::uint32_t>(child);
  followed.tables.add_target(pid, 0);
  BOOST_CHECK(followed.process(pid) != nullptr);
  followed.exit(pid, pid);
  BOOST_CHECK(followed.process(pid) == nullptr);
  ::waitpid(child, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(a_number_that_is_used_again_is_another_process) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  followed.tables.add_target(kChild, 0);
  followed.map(kChild, {kBase, 0x1000, 0}, "//anon");
  followed.tables.publish();
  followed.fork(kPid, kChild);
  BOOST_REQUIRE(followed.process(kChild) != nullptr);
  BOOST_TEST(followed.process(kChild)->count == 0U);
  followed.fork(kStranger, kChild);
  BOOST_CHECK(followed.process(kChild) == nullptr);
}

BOOST_AUTO_TEST_CASE(of_too_many_mappings_those_with_tables_and_the_newest_stay) {
  Followed followed;
  followed.tables.add_target(kPid, 0);
  map_code(followed, test_binary("libfunctions.so"));
  constexpr std::uint64_t kAnonymous = kBase + 0x1'0000'0000;
  constexpr std::uint64_t kCount = kMaxMappings + 4;
  for (std::uint64_t i = 0; i < kCount; ++i)
    followed.map(kPid, {kAnonymous + i * 0x2000, 0x1000, 0}, "//anon");
  const auto* process = followed.process(kPid);
  BOOST_TEST(process->count == static_cast<std::uint32_t>(kMaxMappings));
  BOOST_TEST(process->left_out == 5U);
  BOOST_TEST(process->mappings[0].index != PE_NO_TABLE);
  BOOST_TEST(process->mappings[1].start == kAnonymous + 5 * 0x2000);
  BOOST_TEST(followed.tables.statistics().processes_with_gaps == 1U);
}

BOOST_AUTO_TEST_CASE(files_beyond_the_limits_are_in_no_mapping) {
  for (const PackedImages::Limits& limits :
       {PackedImages::Limits{.words = 1}, PackedImages::Limits{.section_bytes = 0},
        PackedImages::Limits{.section_bytes = 1}}) {
    Followed followed(limits);
    followed.tables.add_target(kPid, 0);
    map_code(followed, test_binary("libfunctions.so"));
    followed.map(kPid, {kBase + 0x1'0000'0000, 0x1000, 0}, "//anon");
    const auto* process = followed.process(kPid);
    BOOST_TEST(process->count == 1U);
    BOOST_TEST(process->left_out == 1U);
    BOOST_TEST(followed.tables.statistics().files.left_out == 1U);
    BOOST_TEST(describe_losses(followed.tables.statistics()) ==
               "1 file without room in the kernel's tables; 1 process whose mappings do not "
               "all fit");
  }
}

BOOST_AUTO_TEST_CASE(an_expected_program_with_a_runtime_is_packed_once_before_it_starts) {
  const pe::testing::TempDir folder;
  const std::string path = folder / "node";
  std::filesystem::copy_file(test_binary("libfunctions.so"), path);
  Followed followed;
  followed.tables.expect(path);
  const auto expected = followed.tables.statistics();
  BOOST_TEST(expected.files.functions > 0U);
  BOOST_TEST(expected.table_bytes > 0U);

  followed.tables.add_target(kPid, 0);
  map_code(followed, path);
  const auto* process = followed.process(kPid);
  BOOST_TEST_REQUIRE(process->count > 0U);
  const auto started = followed.tables.statistics();
  BOOST_TEST(started.files.files == 1U);
  BOOST_TEST(started.files.functions == expected.files.functions);
  BOOST_TEST(started.table_bytes == expected.table_bytes);

  unwind::UnwindTable table(image_of(path));
  for (const auto& [start, mapping] : followed.history.processes().space(kPid)->all())
    BOOST_TEST(check_rows(followed, kPid, table, mapping) > 0U);
}

BOOST_AUTO_TEST_CASE(a_file_that_replaces_an_expected_one_is_packed) {
  const pe::testing::TempDir folder;
  const std::string path = folder / "node";
  std::filesystem::copy_file(test_binary("libfunctions.so"), path);
  Followed followed;
  followed.tables.expect(path);
  const auto expected = followed.tables.statistics();
  std::filesystem::rename(path, folder / "old");
  std::filesystem::copy_file(test_binary("libfunctions.so"), path);
  followed.tables.add_target(kPid, 0);
  map_code(followed, path);
  followed.tables.publish();
  BOOST_TEST(followed.tables.statistics().files.functions == 2 * expected.files.functions);
}

BOOST_AUTO_TEST_CASE(an_expected_program_without_a_runtime_is_packed_when_it_is_mapped) {
  Followed followed;
  followed.tables.expect(test_binary("libfunctions.so"));
  BOOST_TEST(followed.tables.statistics().files.functions == 0U);
}

BOOST_AUTO_TEST_CASE(rules_beyond_the_limits_are_unsupported) {
  Followed followed(PackedImages::Limits{.rules = 2});
  followed.tables.add_target(kPid, 0);
  map_code(followed, test_binary("libfunctions.so"));
  followed.tables.publish();
  const auto statistics = followed.tables.statistics();
  BOOST_TEST(statistics.rows_without_rule > 0U);
  BOOST_TEST(statistics.files.unsupported_rows > 0U);
}

BOOST_AUTO_TEST_CASE(a_process_without_room_gets_it_when_another_ends) {
  Followed followed({}, 1);
  followed.tables.add_target(kPid, 0);
  followed.tables.add_target(kChild, 0);
  followed.tables.publish();
  BOOST_CHECK(followed.memory.process(kChild) == nullptr);
  BOOST_TEST(followed.tables.statistics().processes_left_out == 1U);
  followed.exit(kPid, kPid);
  BOOST_CHECK(followed.process(kChild) != nullptr);
  BOOST_CHECK(followed.memory.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
