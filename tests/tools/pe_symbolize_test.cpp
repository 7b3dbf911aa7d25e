// SPDX-License-Identifier: MIT
#include "pe-symbolize/pe_symbolize.h"

#include <fmt/format.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/text.h"
#include "names/resolver.h"
#include "stackfold/stackfold.h"
#include "stream/proc/maps.h"
#include "stream/stream_reader.h"
#include "support/facts.h"
#include "support/jit_dump_builder.h"
#include "support/run_tool.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

/// A variable with a known name, where locks are: behind the code.
extern std::uint64_t lock_of_test[4];
std::uint64_t lock_of_test[4] = {};

using pe::testing::Result;
using pe::testing::run_tool;
using pe::testing::StreamBuilder;

namespace {

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);

Result symbolize(StreamBuilder stream, const std::vector<std::string>& args = {}) {
  return run_tool(pe::kPeSymbolize, args, stream.round().text());
}

/// The folded text that stackfold, the next filter, makes of the output.
std::string folded(const Result& symbolized, const std::vector<std::string>& args = {}) {
  return pe::testing::without_facts(run_tool(pe::kStackfold, args, symbolized.out).out);
}

/// The mapping of this program's code.
struct OwnCode {
  std::uint64_t start = 0, size = 0, file_offset = 0;
  std::string path;
};

OwnCode own_code(std::uint64_t address) {
  OwnCode code;
  pe::stream::for_each_mapping(::getpid(), [&](const pe::stream::MapsLine& map) {
    if (map.start <= address && address < map.end)
      code = {map.start, map.end - map.start, map.file_offset, std::string(map.path)};
  });
  return code;
}

const auto kFunction = reinterpret_cast<std::uint64_t>(&pe::run_as);

/// A template whose full name is long, because it contains a standard type.
template <typename T>
[[gnu::noinline]] std::size_t takes(const T& value) {
  return sizeof value;
}

StreamBuilder with_own_code(std::uint32_t pid) {
  const OwnCode code = own_code(kFunction);
  StreamBuilder stream;
  stream.event()
      .comm(0, pid, pid, "p")
      .map(0, pid, code.start, code.size, code.file_offset, code.path);
  return stream;
}

std::vector<std::string> records_of(std::string_view stream) {
  auto input = pe::testing::memory_input(stream);
  pe::stream::StreamReader reader(input);
  std::vector<std::string> records;
  while (const auto record = reader.next())
    if (!record->is_ours())
      records.emplace_back(reinterpret_cast<const char*>(record->bytes.data()),
                           record->bytes.size());
  return records;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pe_symbolize_tool)

BOOST_AUTO_TEST_CASE(names_a_function_of_a_mapped_program) {
  const auto r = symbolize(with_own_code(1).sample({.chain = {kUser, kFunction, kFunction + 5}}));
  BOOST_TEST(folded(r) == "p;pe::run_as;pe::run_as 1\n");
  BOOST_TEST(r.err == "");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(the_kernels_place_for_probes_is_no_file_that_is_gone) {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p").map(0, 1, 0x7fff'0000, 0x1000, 0, "[uprobes]");
  const auto r = symbolize(stream.sample({.chain = {kUser, 0x7fff'0080, 0x7fff'0001}}));
  BOOST_TEST(folded(r) == "p;[uprobes];[uprobes] 1\n");
  BOOST_TEST(r.err == "");
}

BOOST_AUTO_TEST_CASE(a_lock_has_the_name_of_the_variable_at_its_address) {
  const OwnCode code = own_code(kFunction);
  const auto variable = reinterpret_cast<std::uint64_t>(&lock_of_test);
  const auto on_heap = std::make_unique<std::uint64_t>();
  const auto folded_with = [&](std::uint64_t lock) {
    StreamBuilder stream;
    stream.event(7, "offcpu", PERF_SAMPLE_ADDR)
        .unit(7, "ns")
        .comm(0, 1, 1, "p")
        .map(0, 1, code.start, code.size, code.file_offset, code.path)
        .sample({.chain = {kUser, kFunction}, .period = 1000, .data = lock});
    return folded(symbolize(stream));
  };
  BOOST_TEST(folded_with(variable) == "p;pe::run_as;[futex lock_of_test] 1\n");
  BOOST_TEST(folded_with(variable + 12) == "p;pe::run_as;[futex lock_of_test+0xc] 1\n");
  const std::string nameless = "p;pe::run_as;[futex first waited for at pe::run_as] 1\n";
  BOOST_TEST(folded_with(reinterpret_cast<std::uint64_t>(on_heap.get())) == nameless);
  BOOST_TEST(folded_with(kFunction + 4) == nameless);
  BOOST_TEST(folded_with(4) == nameless);
  BOOST_TEST(folded_with(~std::uint64_t{7}) == nameless);
}

BOOST_AUTO_TEST_CASE(names_functions_of_scripts_with_their_lines) {
  constexpr std::uint64_t kScript = 0x00fe000000010000;
  StreamBuilder stream = with_own_code(1).map(1, 1, kScript, 0x10000, 0, "[python] f /srv/a.py:3");
  stream.sample({.chain = {kUser, kScript + 2, kScript + 9}});
  BOOST_TEST(folded(symbolize(stream), {"--annotate"}) == "p;f_[s];f_[s] 1\n");
  BOOST_TEST(folded(symbolize(stream, {"--lines"}), {"--lines"}) == "p;f:a.py:11;f:a.py:5 1\n");
}

BOOST_AUTO_TEST_CASE(names_are_simplified_if_asked) {
  const auto address = reinterpret_cast<std::uint64_t>(&takes<std::string>);
  StreamBuilder stream = with_own_code(1).sample({.chain = {kUser, address}});
  BOOST_TEST(folded(symbolize(stream)).find("basic_string<char") != std::string::npos);
  BOOST_TEST(folded(symbolize(stream, {"--simplify-names"})) ==
             "p;(anonymous namespace)::takes<std::string> 1\n");
}

BOOST_AUTO_TEST_CASE(a_return_address_behind_the_end_of_a_function_still_belongs_to_it) {
  // A function's last instruction can be a call that never returns.
  const auto r = symbolize(with_own_code(1).sample({.chain = {kUser, kFunction, kFunction}}));
  const std::string text = folded(r);
  BOOST_TEST(text.ends_with(";pe::run_as 1\n"));
  BOOST_TEST(text != "p;pe::run_as;pe::run_as 1\n");
}

BOOST_AUTO_TEST_CASE(every_record_passes_untouched) {
  auto stream = with_own_code(1);
  stream.sample({.time_ns = 1, .chain = {kUser, kFunction}})
      .lost(2, 3)
      .fork(3, 8, 1)
      .sample({.time_ns = 4});
  auto expected = records_of(stream.text());
  auto passed = records_of(symbolize(stream).out);
  std::sort(expected.begin(), expected.end());
  std::sort(passed.begin(), passed.end());
  constexpr std::uint16_t kOrder = pe::stream::kMiscMoreRounds | pe::stream::kMiscInOrder;
  for (const std::uint16_t misc : {std::uint16_t{0}, pe::stream::kMiscMoreRounds, kOrder})
    std::erase(
        passed,
        std::string(pe::bytes_of(perf_event_header{pe::stream::kRecordFinishedRound, misc, 8})));
  BOOST_TEST(passed == expected);
}

BOOST_AUTO_TEST_CASE(only_the_end_says_that_it_is_the_end) {
  // First a round of another recorder, which does not mark the last round; then a stream of ours
  // that was cut after a round.
  auto stream = StreamBuilder();
  stream.event().sample({.time_ns = 1, .chain = {0x10}}).round();
  const auto whole = run_tool(pe::kPeSymbolize, {}, stream.text());
  BOOST_TEST(whole.status == 0);
  const std::string end(pe::bytes_of(perf_event_header{pe::stream::kRecordFinishedRound, 0, 8}));
  BOOST_TEST(whole.out.find(end) == whole.out.size() - end.size());
  const auto cut = run_tool(pe::kPeSymbolize, {}, stream.earlier_round().text());
  BOOST_TEST(cut.status == 1);
  BOOST_TEST(cut.out.find(end) == std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_address_has_the_name_of_what_was_mapped_at_that_moment) {
  auto stream = with_own_code(1);
  stream.sample({.time_ns = 10, .chain = {kUser, kFunction}})
      .map(20, 1, kFunction & ~0xfffULL, 0x1000, 0, "/nonexistent/lib.so")
      .sample({.time_ns = 30, .chain = {kUser, kFunction}})
      .comm(40, 1, 1, "p", true)
      .sample({.time_ns = 50, .chain = {kUser, kFunction}});
  const auto offset = kFunction & 0xfffULL;
  const auto r = symbolize(stream);
  BOOST_TEST(folded(r) == fmt::format("p;[unknown] 1\np;lib.so+{:#x} 1\np;pe::run_as 1\n", offset));
  BOOST_TEST(r.err ==
             "pe-symbolize: stdin: 3 samples; 2 of 3 frames without a name (66.7 %): "
             "1 not in mapped code (broken frame-pointer chain?), 1 in files "
             "that are gone\n");
}

BOOST_AUTO_TEST_CASE(a_stripped_file_has_one_frame_a_function) {
  const pe::testing::TempDir dir;
  const OwnCode code = own_code(kFunction);
  const std::string stripped = dir / "stripped";
  pe::testing::output_of(fmt::format("strip --strip-all -o {} {}", stripped, code.path));
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p").map(0, 1, code.start, code.size, code.file_offset, stripped);
  stream.sample({.chain = {kUser, kFunction}}).sample({.chain = {kUser, kFunction + 5}});
  const auto r = symbolize(stream);
  const auto opened = pe::objects::Image::open(code.path);
  const auto svma = std::get<pe::objects::Image>(opened).svma_of_file_offset(
      kFunction - code.start + code.file_offset);
  BOOST_TEST(folded(r) == fmt::format("p;stripped+{:#x} 2\n", svma.value()));
}

/// As in `stackpipe record -o a.pe` and `stackpipe top a.pe`.
BOOST_AUTO_TEST_CASE(missing_names_are_reported_by_the_first_pass_only) {
  const auto stream =
      StreamBuilder().event().comm(0, 1, 1, "p").sample({.chain = {kUser, 0x10, 0x20}});
  const auto first = symbolize(stream);
  BOOST_TEST(first.err.find("2 of 2 frames without a name") != std::string::npos, first.err);
  const auto second = run_tool(pe::kPeSymbolize, {}, first.out);
  BOOST_TEST(second.status == 0);
  BOOST_TEST(second.err == "");
  BOOST_TEST(folded(second) == folded(first));
}

BOOST_AUTO_TEST_CASE(statistics_tell_of_each_module_and_reason_the_largest_first) {
  auto stream = with_own_code(1);
  stream.map(0, 1, 0x10000, 0x1000, 0, "/nonexistent/\x1blib.so");
  for (const std::uint64_t address : {0x10010, 0x10020, 0x99999})
    stream.sample({.chain = {kUser, address}});
  stream.sample({.chain = {kUser, kFunction}});
  const auto r = symbolize(stream, {"--stats", "-q"});
  BOOST_TEST(
      r.err ==
      "pe-symbolize:          4 100.0 %  all frames\n"
      "pe-symbolize:          3  75.0 %  without a name\n"
      "pe-symbolize:          2  50.0 %  /nonexistent/\\x1blib.so  in files that are gone\n"
      "pe-symbolize:          1  25.0 %  -  not in mapped code (broken frame-pointer chain?)\n");
}

BOOST_AUTO_TEST_CASE(two_files_of_one_path_are_told_apart_and_the_wrong_one_refused) {
  // Two containers can have different files at the same path: here one of the build ids is wrong.
  const OwnCode code = own_code(kFunction);
  const auto opened = pe::objects::Image::open(code.path);
  const auto id = std::get<pe::objects::Image>(opened).build_id();
  const std::string own(reinterpret_cast<const char*>(id.data()), id.size());
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "a").comm(0, 2, 2, "b");
  stream.map_of_build_id(0, 1, {code.start, code.size, code.file_offset}, code.path, own);
  stream.map_of_build_id(0, 2, {code.start, code.size, code.file_offset}, code.path,
                         std::string(20, '\xab'));
  stream.sample({.pid = 2, .tid = 2, .chain = {kUser, kFunction}});
  stream.sample({.pid = 2, .tid = 2, .chain = {kUser, kFunction + 64}});
  stream.sample({.chain = {kUser, kFunction}});
  const auto r = symbolize(stream);
  const std::string text = folded(r);
  BOOST_TEST(text.starts_with("a;pe::run_as 1\nb;"));
  BOOST_TEST(text.find("pe::", 10) == std::string::npos);
  std::string hex;
  for (int i = 0; i < 20; ++i)
    hex += "ab";
  BOOST_TEST(r.err.starts_with("pe-symbolize: " + pe::in_quotes(code.path) +
                               ": its build id is not the recorded " + hex + ": not used\n"));
  BOOST_TEST(r.err.ends_with(
      "2 of 3 frames without a name (66.7 %): 2 in files whose build id differs\n"));
}

BOOST_AUTO_TEST_CASE(a_forked_process_is_named_from_its_parents_mappings) {
  auto stream = with_own_code(1);
  stream.fork(5, 2, 1).sample({.time_ns = 10, .pid = 2, .tid = 2, .chain = {kUser, kFunction}});
  BOOST_TEST(folded(symbolize(stream)) == "p;pe::run_as 1\n");
}

BOOST_AUTO_TEST_CASE(names_of_an_earlier_pass_are_replaced) {
  const auto once = symbolize(with_own_code(1).sample({.chain = {kUser, kFunction}}));
  const auto twice = run_tool(pe::kPeSymbolize, {}, once.out);
  BOOST_TEST(folded(twice) == folded(once));
}

BOOST_AUTO_TEST_CASE(another_kernels_addresses_are_not_misread) {
  StreamBuilder stream;
  stream.event().kernel(0xffffffff12345000).comm(0, 1, 1, "p");
  stream.sample({.time_ns = 1, .chain = {kKernel, 0xffffffff12345678}});
  stream.sample({.time_ns = 2, .chain = {kKernel, 0xffffffff12345abc}});
  const auto r = symbolize(stream);
  BOOST_TEST(folded(r, {"--annotate"}) == "p;[kernel]_[k] 2\n");
  BOOST_TEST((r.err.starts_with("pe-symbolize: recorded under another kernel") ||
              r.err.starts_with("pe-symbolize: kernel symbols are hidden")));
  // one line with the reason, and the closing line
  BOOST_TEST(std::count(r.err.begin(), r.err.end(), '\n') == 2);
}

BOOST_AUTO_TEST_CASE(code_without_a_file_has_the_names_of_its_perf_map) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  std::ofstream(path) << "5000 100 LazyCompile:*hot x.js:1\n";
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.sample({.pid = pid, .tid = pid, .chain = {kUser, 0x5010, 0x5200}});
  const auto r = symbolize(stream);
  std::filesystem::remove(path);
  BOOST_TEST(folded(r, {"--annotate"}) == "js;[unknown]_[j];LazyCompile:*hot x.js:1_[j] 1\n");
  BOOST_TEST(r.err ==
             "pe-symbolize: stdin: 1 sample; 1 of 2 frames without a name (50.0 %): 1 not in the "
             "program's perf map or jitdump\n");
}

BOOST_AUTO_TEST_CASE(code_without_a_perf_map_is_counted) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.sample({.pid = pid, .tid = pid, .chain = {kUser, 0x5010}});
  BOOST_TEST(symbolize(stream).err ==
             "pe-symbolize: stdin: 1 sample; 1 of 1 frame without a name (100.0 %): 1 generated at "
             "run time, without a readable perf map or jitdump\n");
}

BOOST_AUTO_TEST_CASE(code_without_a_file_has_the_names_of_its_jitdump_at_that_moment) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const pe::testing::TempDir dir;
  const std::string path = dir.file("jit-1.dump", pe::testing::JitDumpBuilder()
                                                      .load(10, 0x5000, 0x100, "early")
                                                      .load(20, 0x5000, 0x100, "late")
                                                      .record(0, 20, "nonsense")
                                                      .text());
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.map(1, pid, 0x9000, 0x1000, 0, path);
  for (const std::uint64_t time_ns : {5, 15, 19, 25})
    stream.sample({.time_ns = time_ns, .pid = pid, .tid = pid, .chain = {kUser, 0x5010}});
  const auto r = symbolize(stream);
  BOOST_TEST(folded(r, {"--annotate"}) == "js;[unknown]_[j] 1\njs;early_[j] 2\njs;late_[j] 1\n");
  BOOST_TEST(r.err ==
             "pe-symbolize: stdin: 4 samples; 1 of 4 frames without a name (25.0 %): 1 not in the "
             "program's perf map or jitdump; 1 record of jitdumps not understood\n");
}

BOOST_AUTO_TEST_CASE(a_jitdump_that_is_not_written_to_its_end_is_reported_with_its_share) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const pe::testing::TempDir dir;
  const std::string text = pe::testing::JitDumpBuilder()
                               .load(10, 0x5000, 0x100, "known")
                               .load(10, 0x5100, 0x100, "buffered")
                               .text();
  const std::string path = dir.file("jit-1.dump", text.substr(0, text.size() - 1));
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.map(1, pid, 0x9000, 0x1000, 0, path);
  for (const std::uint64_t address : {0x5010, 0x5020, 0x5030, 0x5110})
    stream.sample(
        {.time_ns = 15, .pid = pid, .tid = pid, .chain = {kUser, address, address, 0x5001}});
  const auto r = symbolize(stream);
  BOOST_TEST(folded(r) == "js;known;[unknown] 1\njs;known;known;known 3\n");
  BOOST_TEST(r.err ==
             "pe-symbolize: '" + path +
                 "' is incomplete: 25.0 % of the samples have functions without a name; record "
                 "until the program ends, or have it write a perf map (node --perf-basic-prof, "
                 "python3 -X perf)\npe-symbolize: stdin: 4 samples; 2 of 12 frames without a name "
                 "(16.7 %): 2 not yet written to the program's jitdump\n");
}

BOOST_AUTO_TEST_CASE(a_jitdump_that_is_mapped_as_data_has_names) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const pe::testing::TempDir dir;
  const std::string path =
      dir.file("jit-1.dump", pe::testing::JitDumpBuilder().load(10, 0x5000, 0x100, "hot").text());
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.data_map(1, pid, {0x9000, 0x1000, 0}, path);
  stream.sample({.time_ns = 15, .pid = pid, .tid = pid, .chain = {kUser, 0x5010}});
  BOOST_TEST(folded(symbolize(stream)) == "js;hot 1\n");
}

BOOST_AUTO_TEST_CASE(lines_of_code_without_a_file_are_its_jitdumps) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const pe::testing::TempDir dir;
  const std::string path =
      dir.file("jit-1.dump", pe::testing::JitDumpBuilder()
                                 .lines(10, 0x5000, {{0x5000, 3, "a/x.js"}, {0x5020, 4, "a/x.js"}})
                                 .load(10, 0x5000, 0x100, "hot")
                                 .text());
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.map(1, pid, 0x9000, 0x1000, 0, path);
  for (const std::uint64_t address : {0x5010, 0x5020})
    stream.sample({.time_ns = 15, .pid = pid, .tid = pid, .chain = {kUser, address}});
  BOOST_TEST(folded(symbolize(stream, {"--lines"}), {"--lines"}) ==
             "js;hot:x.js:3 1\njs;hot:x.js:4 1\n");
  BOOST_TEST(folded(symbolize(stream), {"--lines"}) == "js;hot 2\n");
}

BOOST_AUTO_TEST_CASE(a_perf_map_that_has_grown_names_what_had_no_name) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  std::ofstream(path) << "5000 100 first\n";
  const pe::stream::MappedFile file{"//anon"};
  const pe::stream::Mapping mapping{0x4000, 0x8000, 0, &file};
  pe::names::Resolver resolver([](const std::string&) {});
  const auto names = [&] {
    return resolver.user(pid, 0x5010, &mapping).functions.back().name + " " +
           resolver.user(pid, 0x6010, &mapping).functions.back().name;
  };
  BOOST_TEST(names() == "first [unknown]");
  std::ofstream(path, std::ios::app) << "5000 20 second\n6000 20 third\n7000 20 not asked\n";
  std::string changes;
  resolver.advance_jit(
      pid, 1, [&](std::uint64_t start, std::uint64_t) { changes += fmt::format("{:x} ", start); });
  std::filesystem::remove(path);
  BOOST_TEST(changes == "5000 6000 ");
  BOOST_TEST(names() == "second third");
}

BOOST_AUTO_TEST_CASE(lines_of_a_perf_map_that_make_no_sense_are_in_the_closing_line) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  std::ofstream(path) << "5000 100 hot\nnonsense\n6000 -1 negative\n";
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.sample({.pid = pid, .tid = pid, .chain = {kUser, 0x5010}});
  const auto told = [&](StreamBuilder made) { return symbolize(std::move(made)).err; };
  const std::string line = "pe-symbolize: stdin: 1 sample; 2 lines of perf maps not understood\n";
  BOOST_TEST(told(stream) == line);
  // The count stays when another program gets the pid and the symbols are dropped.
  BOOST_TEST(told(stream.comm(2, pid, pid, "new", true)) == line);
  std::filesystem::remove(path);
}

BOOST_AUTO_TEST_CASE(a_perf_map_that_is_too_large_is_in_the_closing_line) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  std::ofstream(path) << "5000 100 hot\n";
  std::filesystem::resize_file(path, pe::names::JitMapFile::kMaxFileBytes + 1);
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.sample({.pid = pid, .tid = pid, .chain = {kUser, 0x5010}});
  const std::string line =
      "pe-symbolize: stdin: 1 sample; 1 perf map too large, not read to the end\n";
  const auto r = symbolize(stream);
  const auto renamed = symbolize(stream.comm(2, pid, pid, "new", true));
  std::filesystem::remove(path);
  BOOST_TEST(folded(r) == "js;hot 1\n");
  BOOST_TEST(r.err == line);
  BOOST_TEST(renamed.err == line);
  BOOST_TEST(describe(pe::names::SkippedLines{.perf_maps = 1, .kallsyms = 2, .cut_perf_maps = 2}) ==
             "1 line of perf maps not understood, 2 perf maps too large, not read to the end, 2 "
             "lines of kernel symbols not understood");
}

BOOST_AUTO_TEST_CASE(lines_of_kernel_symbols_that_make_no_sense_are_in_the_closing_line) {
  const pe::testing::TempDir dir;
  pe::names::Resolver resolver(
      [](const std::string&) {}, {},
      dir.file("kallsyms", "ffffffff81000000 T _text\nnonsense\nffffffff82000000 T _etext\n"));
  BOOST_TEST(describe(resolver.skipped_lines()) == "");
  BOOST_TEST(resolver.kernel(0xffffffff81000010, 0).functions.at(0).name == "_text");
  BOOST_TEST(describe(resolver.skipped_lines()) == "1 line of kernel symbols not understood");
  BOOST_TEST(describe(pe::names::SkippedLines{.perf_maps = 1, .kallsyms = 2}) ==
             "1 line of perf maps not understood, 2 lines of kernel symbols not understood");
}

BOOST_AUTO_TEST_CASE(quiet_leaves_out_the_closing_line_but_not_errors) {
  const auto stream = StreamBuilder().event().sample({.chain = {kUser, 0x10}});
  BOOST_TEST(symbolize(stream, {"-q"}).err == "");
  const auto cut = run_tool(pe::kPeSymbolize, {"-q"}, stream.text());
  BOOST_TEST(cut.err == "pe-symbolize: stdin: has no end mark: its writer was cut off\n");
  BOOST_TEST(cut.status == 1);
}

BOOST_AUTO_TEST_CASE(two_streams_cannot_be_joined) {
  const auto r = run_tool(pe::kPeSymbolize, {"a", "b"});
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err == "pe-symbolize: more than one input: streams cannot be joined (see --help)\n");
}

BOOST_AUTO_TEST_SUITE_END()
