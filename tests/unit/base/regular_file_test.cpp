// SPDX-License-Identifier: MIT
#include "base/io/regular_file.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "support/temp_dir.h"

namespace {

using pe::FileFailure;
using pe::Links;
using pe::open_regular;

FileFailure failure_of(const std::string& path, Links links = Links::kFollow) {
  const auto opened = open_regular(path, links);
  BOOST_REQUIRE(std::holds_alternative<FileFailure>(opened));
  return std::get<FileFailure>(opened);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(regular_file)

BOOST_AUTO_TEST_CASE(says_size_and_owner) {
  const pe::testing::TempDir dir;
  const auto opened = open_regular(dir.file("a", "12345"));
  const auto& file = std::get<pe::RegularFile>(opened);
  BOOST_TEST(file.size_bytes == 5U);
  BOOST_TEST(file.owner == ::geteuid());
}

BOOST_AUTO_TEST_CASE(a_fifo_without_a_writer_does_not_block) {
  const pe::testing::TempDir dir;
  const std::string fifo = dir / "fifo";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_CHECK(failure_of(fifo) == FileFailure::kNotRegular);
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_not_even_opened) {
  const pe::testing::TempDir dir;
  const std::string fifo = dir / "fifo";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const pe::Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  BOOST_REQUIRE(::inotify_add_watch(watch.get(), fifo.c_str(), IN_OPEN) >= 0);
  std::array<char, 256> events;
  BOOST_CHECK(failure_of(fifo) == FileFailure::kNotRegular);
  BOOST_TEST(::read(watch.get(), events.data(), events.size()) == -1);
  // An open would have been seen, as this one is.
  const pe::Fd opened(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  BOOST_TEST(::read(watch.get(), events.data(), events.size()) > 0);
}

BOOST_AUTO_TEST_CASE(only_files_are_opened) {
  BOOST_CHECK(failure_of("/") == FileFailure::kNotRegular);
  BOOST_CHECK(failure_of("/dev/null") == FileFailure::kNotRegular);
  BOOST_CHECK(failure_of("/nonexistent/file") == FileFailure::kMissing);
  BOOST_CHECK(failure_of("/dev/null/file") == FileFailure::kMissing);
}

BOOST_AUTO_TEST_CASE(what_the_kernel_makes_up_is_no_stored_file) {
  const pe::testing::TempDir dir;
  for (const char* path : {"/proc/self/status", "/proc/version", "/sys/kernel/notes"}) {
    const auto opened = pe::open_stored(path);
    BOOST_REQUIRE(std::holds_alternative<FileFailure>(opened));
    BOOST_CHECK(std::get<FileFailure>(opened) == FileFailure::kNotRegular);
  }
  BOOST_CHECK(std::holds_alternative<pe::RegularFile>(open_regular("/proc/version")));
  for (const std::string& path : {std::string("/proc/self/exe"), dir.file("a", "1")})
    BOOST_CHECK(std::holds_alternative<pe::RegularFile>(pe::open_stored(path)));
}

BOOST_AUTO_TEST_CASE(follows_links_only_where_allowed) {
  const pe::testing::TempDir dir;
  std::filesystem::create_symlink(dir.file("a", "1"), dir / "link");
  BOOST_CHECK(std::holds_alternative<pe::RegularFile>(open_regular(dir / "link")));
  BOOST_CHECK(failure_of(dir / "link", Links::kRefuse) == FileFailure::kNotRegular);
}

BOOST_AUTO_TEST_CASE(reads_what_is_there) {
  const pe::testing::TempDir dir;
  const auto opened = open_regular(dir.file("a", "12345"));
  const auto& fd = std::get<pe::RegularFile>(opened).fd;
  std::array<std::byte, 4> into{};
  BOOST_TEST(pe::read_at(fd, 3, into) == 2U);
  BOOST_TEST(std::to_integer<int>(into[1]) == '5');
  BOOST_TEST(pe::read_at(fd, 5, into) == 0U);
  BOOST_TEST(pe::read_at(fd, ~std::uint64_t{0}, into) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
