// SPDX-License-Identifier: MIT
#include "base/io/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/io/input.h"
#include "support/string_output.h"
#include "support/temp_dir.h"

using pe::Named;
using pe::read_small_file;

BOOST_AUTO_TEST_SUITE(output)

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_with_its_name) {
  pe::FileOutput out("/dev/full", Named::kAtOnce);
  out.write("x");
  BOOST_CHECK_EXCEPTION(out.flush(), pe::Error, [](const pe::Error& e) {
    return std::string_view(e.what()) == "/dev/full: No space left on device";
  });
  BOOST_CHECK_NO_THROW(out.flush());  // the lost bytes are not written again
}

BOOST_AUTO_TEST_CASE(a_large_block_follows_what_was_written_before) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "");
  const std::string block(200'000, 'b');
  {
    pe::FileOutput out(path, Named::kAtOnce);
    out.write(block);  // the buffer is empty, so the block is written directly
    out.write("a");
    out.write(block);
    out.write("c");
    out.flush();
  }
  BOOST_TEST((read_small_file(path, 1'000'000).value() == block + "a" + block + "c"));
}

BOOST_AUTO_TEST_CASE(a_stream_replaces_the_file_at_once) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "what was there before");
  pe::FileOutput out(path, Named::kAtOnce);
  BOOST_TEST(read_small_file(path, 100).value() == "");
  out.write("new");
  out.flush();
  BOOST_TEST(read_small_file(path, 100).value() == "new");
  BOOST_TEST(!read_small_file(path, 2).has_value());
}

BOOST_AUTO_TEST_CASE(a_result_that_is_not_whole_leaves_the_old_one) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "old");
  {
    pe::FileOutput out(path, Named::kWhenWhole);
    out.write("half");
    out.flush();
  }
  BOOST_TEST(read_small_file(path, 100).value() == "old");
  pe::FileOutput out(path, Named::kWhenWhole);
  out.write("new");
  out.keep();
  BOOST_TEST(read_small_file(path, 100).value() == "new");
}

BOOST_AUTO_TEST_CASE(a_link_is_replaced_wherever_it_leads) {
  const pe::testing::TempDir dir;
  const std::string precious = dir.file("precious", "old");
  BOOST_REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);  // an open of it would wait
  for (const std::string& target :
       {precious, std::string("/dev/null"), std::string("/dev/stdout"), dir / "pipe", dir / "none"})
    for (const Named named : {Named::kAtOnce, Named::kWhenWhole}) {
      std::filesystem::create_symlink(target, dir / "link");
      pe::FileOutput out(dir / "link", named);
      out.write("new");
      out.keep();
      BOOST_TEST(!std::filesystem::is_symlink(dir / "link"), target);
      BOOST_TEST(read_small_file(dir / "link", 9).value() == "new");
      std::filesystem::remove(dir / "link");
    }
  BOOST_TEST(read_small_file(precious, 9).value() == "old");
  BOOST_TEST(!std::filesystem::exists(dir / "none"));
}

BOOST_AUTO_TEST_CASE(a_link_that_takes_the_name_later_is_replaced) {
  const pe::testing::TempDir dir;
  const std::string precious = dir.file("precious", "old");
  pe::FileOutput out(dir / "a", Named::kWhenWhole);
  std::filesystem::create_symlink(precious, dir / "a");
  out.write("new");
  out.keep();
  BOOST_TEST(read_small_file(precious, 9).value() == "old");
  BOOST_TEST(read_small_file(dir / "a", 9).value() == "new");
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_replaced_later_still_gets_the_file) {
  const pe::testing::TempDir dir;
  for (const char* const name : {"folder", "elsewhere"})
    std::filesystem::create_directory(dir / name);
  pe::FileOutput out(dir / "folder/a", Named::kWhenWhole);
  std::filesystem::rename(dir / "folder", dir / "moved");
  std::filesystem::create_symlink(dir / "elsewhere", dir / "folder");
  out.write("new");
  out.keep();
  BOOST_TEST(std::filesystem::is_empty(dir / "elsewhere"));
  BOOST_TEST(read_small_file(dir / "moved/a", 9).value() == "new");
}

BOOST_AUTO_TEST_CASE(a_descriptor_goes_on_where_it_is) {
  const pe::testing::TempDir dir;
  const pe::Fd file(::open(dir.file("a", "old").c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  for (const char* const folder : {"/dev/fd/", "/proc/self/fd/"}) {
    pe::FileOutput out(folder + std::to_string(file.get()), Named::kWhenWhole);
    out.write("new");
    out.keep();
  }
  BOOST_TEST(read_small_file(dir / "a", 9).value() == "oldnewnew");
  for (const char* const none : {"/dev/fd/65535", "/dev/fd/x", "/dev/fd/-1", "/proc/self/fd/"})
    BOOST_CHECK_THROW(pe::FileOutput(none, Named::kWhenWhole), pe::Error);
}

BOOST_AUTO_TEST_CASE(a_block_device_is_refused) {
  const pe::testing::TempDir dir;
  constexpr unsigned kLoop = 7, kUnused = 1'000'000;
  if (::mknod((dir / "disk").c_str(), S_IFBLK | 0600U, makedev(kLoop, kUnused)) != 0) {
    BOOST_TEST_MESSAGE("no block device can be made here: " << pe::errno_text(errno));
    return;
  }
  BOOST_CHECK_EXCEPTION(pe::FileOutput(dir / "disk", Named::kAtOnce), pe::Error,
                        [](const pe::Error& e) {
                          return std::string_view(e.what()).ends_with("/disk: is a block device");
                        });
}

BOOST_AUTO_TEST_CASE(a_terminal_gets_no_control_characters_of_others) {
  pe::StringOutput out;
  pe::TerminalOutput terminal(out);
  terminal.write("a\tb\n\033[31mred\033[0m \033]0;title\a \xc2");
  terminal.write(
      "\x9b"
      "2J \xe2\x80\xae \x9b \033[8mhidden\033[");
  terminal.flush();
  BOOST_TEST(out.text ==
             "a\tb\n\033[31mred\033[0m \\x1b]0;title\\x07 \\xc2\\x9b2J \\u202e \\x9b "
             "\\x1b[8mhidden\\x1b[");
}

BOOST_AUTO_TEST_CASE(another_users_pipe_is_refused) {
  if (::geteuid() != 0)
    return;
  const pe::testing::TempDir dir;
  const std::string path = dir / "pipe";
  BOOST_REQUIRE(::mkfifo(path.c_str(), 0666) == 0 && ::chown(path.c_str(), 12345, 12345) == 0);
  BOOST_CHECK_EXCEPTION(pe::FileOutput(path, Named::kAtOnce), pe::Error, [](const pe::Error& e) {
    return std::string_view(e.what()).ends_with("/pipe: is another user's pipe");
  });
}

namespace {

struct FullPipe {
  FullPipe() { BOOST_REQUIRE(::pipe(ends.data()) == 0); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  FullPipe(FullPipe&&) = delete;
  FullPipe& operator=(FullPipe&&) = delete;
  ~FullPipe() { ::close(ends[0]), ::close(ends[1]); }

  [[nodiscard]] bool has_room() const {
    pollfd polled{ends[1], POLLOUT, 0};
    return ::poll(&polled, 1, 0) == 1;
  }
  /// Reads all bytes in the pipe; there must be some.
  void take() {
    std::array<char, 1 << 20> bytes;
    const ssize_t got = ::read(ends[0], bytes.data(), bytes.size());
    BOOST_REQUIRE(got > 0);
    taken.append(bytes.data(), static_cast<std::size_t>(got));
  }

  std::array<int, 2> ends{};
  std::string taken;
};

/// Bytes that do not repeat at the size of a pipe or of a page.
std::string counted_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(for_a_full_pipe_the_caller_waits) {
  FullPipe pipe;
  pe::FdOutput out(pipe.ends[1], "pipe");
  std::size_t times_full = 0;
  out.wait_by([&](int fd) {
    BOOST_TEST(fd == pipe.ends[1]);
    if (!pipe.has_room()) {
      ++times_full;
      pipe.take();
    }
    return true;
  });
  const std::string bytes = counted_bytes(300'001);
  out.write(bytes);
  out.flush();
  pipe.take();
  BOOST_TEST(times_full >= 1U);
  BOOST_TEST((pipe.taken == bytes));
}

BOOST_AUTO_TEST_CASE(who_does_not_want_to_wait_leaves_the_rest_unwritten) {
  FullPipe pipe;
  pe::FdOutput out(pipe.ends[1], "pipe");
  out.wait_by([&](int) { return pipe.has_room(); });
  const std::string bytes = counted_bytes(300'001);
  out.write(bytes);
  out.write("more");
  out.flush();
  const bool was_full = !pipe.has_room();
  pipe.take();
  BOOST_TEST(was_full);
  BOOST_TEST((bytes.starts_with(pipe.taken)));
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_a_file) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "");
  pe::FileOutput out(path, Named::kAtOnce);
  out.wait_by([](int) { return false; });
  out.write("new");
  out.flush();
  BOOST_TEST(read_small_file(path, 100).value() == "new");
}

BOOST_AUTO_TEST_CASE(what_is_held_comes_at_once_and_first) {
  pe::StringOutput out;
  pe::HeldOutput held(out);
  held.write("a");
  held.flush();
  held.write("b");
  BOOST_TEST(out.text == "");
  held.release();
  BOOST_TEST(out.text == "ab");
  held.write("c");
  BOOST_TEST(out.text == "abc");
}

BOOST_AUTO_TEST_SUITE_END()
