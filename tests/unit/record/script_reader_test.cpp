// The interpreter that these tests find is in this program: three symbols that CPython has.
// SPDX-License-Identifier: MIT
#include "record/stream/script_reader.h"

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
using record::ScriptReader;

BOOST_AUTO_TEST_SUITE(script_reader)

namespace {

const std::uint64_t kRuntime = reinterpret_cast<std::uint64_t>(&_PyRuntime);
constexpr std::uint32_t kPid = 42;

/// A reader that has examined this program.
struct Expecting {
  ScriptReader reader;
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
  const record::ScriptStack& name(const runtimes::ScriptFrames& stack) {
    return reader.name(kPid, stack, [](auto, const auto&) {});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_is_examined_before_it_starts) {
  Expecting self;
  BOOST_TEST_REQUIRE(self.files.size() == 1U);
  struct stat status = {};
  BOOST_TEST_REQUIRE(::stat("/proc/self/exe", &status) == 0);
  const ScriptReader::File& file = self.files.front();
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
  const auto start = [&path](ScriptReader& reader) {
    stream::History history;
    testing::ProcessRecords records{history};
    records.map(kNoPid, {.start = 0x7f0000000000, .size = 0x1000, .file_offset = 0}, path);
    reader.follow(history, 100);
  };
  ScriptReader unexpecting;
  start(unexpecting);
  BOOST_TEST(unexpecting.take_files().size() == 1U);
  Expecting self;
  start(self.reader);
  BOOST_TEST(self.reader.take_files().empty());
}

BOOST_AUTO_TEST_CASE(a_process_that_the_kernel_has_found_has_frames_before_its_records_arrive) {
  Expecting self;
  self.reader.see(kPid, self.files.front().number, kRuntime, 100);
  BOOST_TEST_REQUIRE(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.reader.process(kPid)->runtime() == kRuntime);
  BOOST_TEST(self.reader.file_of(kPid) == self.files.front().number);
  self.exec(90);
  BOOST_TEST(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.name({.frames = {{.code = 8, .ends_call = true}}}).words.size() == 1U);
  self.exec(110);
  BOOST_TEST(self.reader.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_CASE(another_interpreter_in_the_process_replaces_the_first) {
  Expecting self;
  self.reader.see(kPid, self.files.front().number, kRuntime, 100);
  self.reader.see(kPid, self.files.front().number, kRuntime + 4096, 200);
  BOOST_TEST_REQUIRE(self.reader.process(kPid) != nullptr);
  BOOST_TEST(self.reader.process(kPid)->runtime() == kRuntime + 4096);
}

BOOST_AUTO_TEST_CASE(unknown_files_are_ignored) {
  Expecting self;
  self.reader.see(kPid, 0, kRuntime, 100);
  self.reader.see(kPid, 2, kRuntime, 100);
  BOOST_TEST(self.reader.process(kPid) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
