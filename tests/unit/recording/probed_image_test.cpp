// SPDX-License-Identifier: MIT
#include "recording/probes/probed_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <filesystem>
#include <string>
#include <variant>

#include "base/fd.h"
#include "recording/counters/counters.h"
#include "stream/proc/maps.h"
#include "support/temp_dir.h"

using pe::recording::MappedCode;
using pe::recording::ProbedImage;

namespace {

constexpr std::uint64_t kPlace = 0x1234, kOther = 0x2345;

/// A copy of this program, which is open as a file with probes.
struct Probed {
  Probed()
      : path(copy_of_program(dir / "program")),
        file(std::get<pe::objects::Image>(pe::objects::Image::open(path)), path) {
    file.remember(kPlace);
  }

  static std::string copy_of_program(const std::string& to) {
    std::filesystem::copy_file("/proc/self/exe", to);
    return to;
  }
  /// Changes a byte of the file, and gives it its old time of modification.
  void change(std::uint64_t offset) const {
    struct stat before = {};
    BOOST_REQUIRE(::stat(path.c_str(), &before) == 0);
    const pe::Fd out(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    BOOST_REQUIRE(::pread(out.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
    byte = static_cast<char>(~byte);
    BOOST_REQUIRE(::pwrite(out.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
    const timespec times[] = {before.st_atim, before.st_mtim};
    BOOST_REQUIRE(::futimens(out.get(), times) == 0);
  }

  pe::testing::TempDir dir;
  std::string path;
  ProbedImage file;
};

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat of_a = {}, of_b = {};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/// Writes where this process has mapped the code, as the kernel writes a breakpoint.
void write_breakpoint(const std::string& path, std::uint64_t file_offset) {
  constexpr std::byte kBreakpoint{0xcc};
  bool is_written = false;
  pe::stream::for_each_mapping(::getpid(), [&](const pe::stream::MapsLine& map) {
    if (map.path != path || !map.executable)
      return;
    const pe::Fd memory(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    const auto at = static_cast<off_t>(map.start + file_offset % 4096);
    is_written = ::pwrite(memory.get(), &kBreakpoint, 1, at) == 1;
  });
  BOOST_REQUIRE(is_written);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(probed_image)

BOOST_AUTO_TEST_CASE(the_kernel_gets_the_open_file_whatever_its_path_leads_to) {
  const Probed probed;
  BOOST_TEST(is_same_file(probed.file.kernel_path(), probed.path));
  const std::string other = Probed::copy_of_program(probed.dir / "other");
  const std::string kept = probed.dir / "kept";
  std::filesystem::rename(probed.path, kept);
  std::filesystem::rename(other, probed.path);
  BOOST_TEST(!is_same_file(probed.file.kernel_path(), probed.path));
  BOOST_TEST(is_same_file(probed.file.kernel_path(), kept));
  BOOST_TEST(probed.file.is_unchanged());
}

BOOST_AUTO_TEST_CASE(a_changed_instruction_shows_even_if_the_times_are_set_back) {
  const Probed probed;
  BOOST_TEST(probed.file.is_unchanged());
  probed.change(kOther);
  BOOST_TEST(probed.file.is_unchanged());
  probed.change(kPlace);
  BOOST_TEST(!probed.file.is_unchanged());
  probed.change(kPlace);
  BOOST_TEST(probed.file.is_unchanged());
}

BOOST_AUTO_TEST_CASE(another_time_or_size_is_a_change) {
  Probed probed;
  const timespec times[] = {{1, 0}, {1, 0}};
  BOOST_REQUIRE(::utimensat(AT_FDCWD, probed.path.c_str(), times, 0) == 0);
  BOOST_TEST(!probed.file.is_unchanged());

  const Probed other;
  std::filesystem::resize_file(other.path, kPlace);
  BOOST_TEST(!other.file.is_unchanged());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(mapped_code)

BOOST_AUTO_TEST_CASE(without_a_file_nothing_is_mapped) {
  const MappedCode code(nullptr, kPlace);
  BOOST_TEST(!code.has_file());
  BOOST_TEST(!code.is_mapped());
  BOOST_TEST(!code.has_breakpoint());
}

BOOST_AUTO_TEST_CASE(a_breakpoint_is_what_the_mapping_has_and_the_file_has_not) {
  const Probed probed;
  const MappedCode code(&probed.file, kPlace);
  BOOST_TEST(code.is_mapped());
  BOOST_TEST(!code.has_breakpoint());
  probed.change(kPlace);  // the mapping has what the file has
  BOOST_TEST(!code.has_breakpoint());
  write_breakpoint(probed.path, kPlace);
  BOOST_TEST(code.has_breakpoint());
}

BOOST_AUTO_TEST_CASE(a_breakpoint_at_another_place_of_the_page_is_none) {
  const Probed probed;
  const MappedCode code(&probed.file, kPlace);
  write_breakpoint(probed.path, kPlace + 1);
  BOOST_TEST(!code.has_breakpoint());
}

BOOST_AUTO_TEST_CASE(no_breakpoint_is_beyond_the_end_of_the_file) {
  const Probed probed;
  const MappedCode code(&probed.file, std::filesystem::file_size(probed.path) + 8192);
  BOOST_TEST(!code.has_breakpoint());
}

BOOST_AUTO_TEST_SUITE_END()
