// The interpreter that these tests find is in this program: three symbols that CPython has.
// SPDX-License-Identifier: MIT
#include "languages/common/script_reader.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process_records.h"

extern "C" {
extern const std::uint64_t Py_Version;
[[gnu::used]] const std::uint64_t Py_Version = 0x030c01f0;
[[gnu::used]] std::uint64_t _PyRuntime[512] = {1};
[[gnu::used, gnu::noinline]] void _PyEval_EvalFrameDefault() { asm volatile(""); }
}

using namespace pe;
using languages::ScriptReader;

BOOST_AUTO_TEST_SUITE(script_reader)

namespace {

const std::uint64_t kRuntime = reinterpret_cast<std::uint64_t>(&_PyRuntime);
constexpr std::uint32_t kPid = 42;

/// A reader that has examined this program.
struct Expecting {
  pe::Budget budget;
  languages::ScriptReader reader{budget};
  stream::History history;
  testing::ProcessRecords records{history};
  std::vector<ScriptReader::File> files;

  Expecting() {
    reader.expect("/proc/self/exe");
    files = reader.take_files();
  }
  void exec(std::uint64_t time_ns) {
    records.exec(kPid);
    reader.follow(history, time_ns);
  }
  const languages::ScriptStack& name(const languages::ScriptFrames& stack) {
    return reader.name(kPid, stack, [](auto, const auto&) {});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_is_examined_before_it_starts) {
  Expecting self;
  BOOST_TEST_REQUIRE(self.files.size() == 1U);
  struct stat status = {};
  BOOST_TEST_REQUIRE(::stat("/proc/self/exe", &status) == 0);
  const languages::ScriptReader::File& file = self.files.front();
  BOOST_TEST(file.inode == status.st_ino);
  BOOST_TEST(file.device == status.st_dev);
  BOOST_TEST(file.layout.python.thread_id == 136U);  // of 3.12
  BOOST_TEST(file.code % 4096 == file.code_offset % 4096);
  BOOST_TEST(self.reader.take_files().empty());
  self.reader.expect("/bin/true");
  self.reader.expect("/nowhere");
  BOOST_TEST(self.reader.take_files().empty());
}

BOOST_AUTO_TEST_CASE(an_expected_program_is_not_examined_again_when_it_starts) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  constexpr std::uint32_t kNoPid = 1U << 30;  // so that the path is opened here
  const auto start = [&path](languages::ScriptReader& reader) {
    stream::History history;
    testing::ProcessRecords records{history};
    records.map(kNoPid, {.start = 0x7f0000000000, .size = 0x1000, .file_offset = 0}, path);
    reader.follow(history, 100);
  };
  pe::Budget budget;
  languages::ScriptReader unexpecting(budget);
  start(unexpecting);
  BOOST_TEST(unexpecting.take_files().size() == 1U);
  Expecting self;
  start(self.reader);
  BOOST_TEST(self.reader.take_files().empty());
}

BOOST_AUTO_TEST_CASE(a_process_that_the_kernel_has_found_has_frames_before_its_records_arrive) {
  Expecting self;
  self.reader.see(
      {.pid = kPid, .file = self.files.front().number, .runtime = kRuntime, .time_ns = 100});
  BOOST_TEST_REQUIRE(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.reader.process(kPid)->runtime() == kRuntime);
  BOOST_TEST(self.reader.file_of(kPid) == self.files.front().number);
  self.exec(90);
  BOOST_TEST(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.name({.frames = {{.code = 8, .ends_call = true}}}).words.size() == 1U);
  self.exec(110);
  BOOST_TEST(self.reader.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_child_has_its_parents_interpreter) {
  constexpr std::uint32_t kChild = 43, kOther = 44;
  Expecting self;
  const std::uint64_t file = self.files.front().number;
  self.reader.see({.pid = kPid, .file = file, .runtime = kRuntime, .time_ns = 100});
  self.records.fork(kPid, kChild);
  self.reader.follow(self.history, 110);
  BOOST_TEST_REQUIRE(self.reader.process(kChild) != nullptr);
  BOOST_TEST(self.reader.process(kChild)->runtime() == kRuntime);
  BOOST_TEST(self.reader.file_of(kChild) == file);
  BOOST_CHECK(self.reader.take_changed().contains(kChild));
  self.records.exit(kChild, kChild);
  self.reader.follow(self.history, 120);
  BOOST_TEST(self.reader.process(kChild) == nullptr);
  BOOST_TEST(self.reader.process(kPid) != nullptr);
  // A fork whose record follows its first sample.
  self.reader.see(
      {.pid = kOther, .parent = kPid, .file = file, .runtime = kRuntime, .time_ns = 140});
  self.records.fork(kPid, kOther);
  self.reader.follow(self.history, 130);
  BOOST_TEST(self.reader.process(kOther) != nullptr);
}

BOOST_AUTO_TEST_CASE(an_interpreter_whose_data_is_mapped_after_its_code_is_found) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto self = static_cast<std::uint32_t>(::getpid());
  Expecting expecting;
  const languages::ScriptReader::File& file = expecting.files.front();
  // The program once more, without any of its bytes.
  const std::size_t bytes = (file.runtime / 4096 + 2) * 4096;
  void* const base = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_TEST_REQUIRE(base != MAP_FAILED);
  const auto avma = reinterpret_cast<std::uint64_t>(base);
  expecting.records.map(
      self, {.start = avma + file.code, .size = 0x1000, .file_offset = file.code_offset}, path);
  expecting.reader.follow(expecting.history, 100);
  BOOST_TEST(expecting.reader.process(self) == nullptr);
  BOOST_TEST(::mprotect(base, bytes, PROT_READ) == 0);
  BOOST_TEST_REQUIRE(expecting.reader.process(self) != nullptr);
  BOOST_TEST(expecting.reader.process(self)->runtime() == avma + file.runtime);
  BOOST_CHECK(expecting.reader.take_changed().contains(self));
  ::munmap(base, bytes);
}

BOOST_AUTO_TEST_CASE(another_interpreter_in_the_process_replaces_the_first) {
  Expecting self;
  self.reader.see(
      {.pid = kPid, .file = self.files.front().number, .runtime = kRuntime, .time_ns = 100});
  self.reader.see(
      {.pid = kPid, .file = self.files.front().number, .runtime = kRuntime + 4096, .time_ns = 200});
  BOOST_TEST_REQUIRE(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.reader.process(kPid)->runtime() == kRuntime + 4096);
}

BOOST_AUTO_TEST_CASE(a_process_pays_for_the_naming_of_a_whole_stack) {
  constexpr std::size_t kFrames = 1'000'000;
  constexpr double kSmallNs = 100'000;
  Expecting self;
  self.reader.see(
      {.pid = kPid, .file = self.files.front().number, .runtime = kRuntime, .time_ns = 100});
  self.budget.end(static_cast<std::uint64_t>(kSmallNs));
  BOOST_TEST(self.budget.may_spend(kPid, Resource::kCpuNs, 0, 0));
  // Nothing is read for these.
  const std::vector<languages::ScriptFrame> frames(kFrames,
                                                   {.code = languages::kNoCode, .ends_call = true});
  self.name({.frames = frames});
  BOOST_TEST(!self.budget.may_spend(kPid, Resource::kCpuNs, 0, 0));
}

BOOST_AUTO_TEST_CASE(unknown_files_are_ignored) {
  Expecting self;
  self.reader.see({.pid = kPid, .file = 0, .runtime = kRuntime, .time_ns = 100});
  self.reader.see({.pid = kPid, .file = 2, .runtime = kRuntime, .time_ns = 100});
  BOOST_TEST(self.reader.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
