// SPDX-License-Identifier: MIT
#include "languages/common/memory_reader.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <functional>
#include <vector>

#include "base/fd.h"

using namespace pe;
using languages::MemoryReader;
using languages::ReadingProcess;

BOOST_AUTO_TEST_SUITE(process_memory)

namespace {

constexpr std::size_t kPage = 4096;

/// Three pages: one that is written, one that never was, and one that is not mapped.
struct Pages {
  Pages() {
    start = static_cast<std::byte*>(
        ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    BOOST_REQUIRE(start != MAP_FAILED);
    ::munmap(start + 2 * kPage, kPage);
    std::fill_n(start, kPage, std::byte{7});
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Pages(Pages&&) = delete;
  Pages& operator=(Pages&&) = delete;
  ~Pages() { ::munmap(start, 2 * kPage); }
  [[nodiscard]] std::uint64_t avma() const { return reinterpret_cast<std::uint64_t>(start); }

  std::byte* start;
};

/// The first page of this program's file.
struct FilePage {
  FilePage()
      : start(::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE,
                     Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)).get(), 0)) {}
  FilePage(const FilePage&) = delete;
  FilePage& operator=(const FilePage&) = delete;
  FilePage(FilePage&&) = delete;
  FilePage& operator=(FilePage&&) = delete;
  ~FilePage() { ::munmap(start, kPage); }
  void drop() const { ::madvise(start, kPage, MADV_DONTNEED); }
  [[nodiscard]] std::uint64_t avma() const { return reinterpret_cast<std::uint64_t>(start); }

  void* start;
};

/// A process that runs `before`, and then waits for its end.
struct Other {
  explicit Other(const std::function<void()>& before = [] {}) : pid(start(before)) {}
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  Other(Other&&) = delete;
  Other& operator=(Other&&) = delete;
  ~Other() {
    if (pid != 0)
      end();
  }
  static pid_t start(const std::function<void()>& before) {
    int ready[2];
    BOOST_REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const Fd from(ready[0]);
    Fd to(ready[1]);
    const pid_t pid = ::fork();
    if (pid == 0) {
      before();
      ::close(to.get());
      for (;;)
        ::pause();
    }
    to.close();
    char none = 0;
    BOOST_TEST(::read(from.get(), &none, 1) == 0);
    return pid;
  }
  void end() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }

  pid_t pid;
};

/// Returns whether a userfaultfd(2) supplies the page from now on, which nobody serves.
bool leave_to_userfaultfd(const std::byte* page) {
  const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api{};
  api.api = UFFD_API;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uint64_t>(page), kPage};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  return fd >= 0 && ::ioctl(fd, UFFDIO_API, &api) == 0 &&
         ::ioctl(fd, UFFDIO_REGISTER, &range) == 0;  // it stays open
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_what_is_mapped) {
  const Pages pages;
  const Other other;
  Budget budget;
  MemoryReader reader(budget);
  std::vector<std::byte> read(3 * kPage - 100, std::byte{1});
  for (int times = 0; times < 2; ++times) {
    BOOST_TEST(reader.read(other.pid, pages.avma() + 100, read) == 2 * kPage - 100);
    BOOST_TEST(std::ranges::count(read, std::byte{7}) == kPage - 100);
    BOOST_TEST(std::ranges::count(read, std::byte{0}) == kPage);
  }
  BOOST_TEST(reader.read(other.pid, pages.avma() + 2 * kPage, read) == 0u);
  BOOST_TEST(reader.read(other.pid, pages.avma(), {}) == 0u);
  BOOST_TEST(reader.read(other.pid, ~std::uint64_t{15}, read) == 0u);
}

BOOST_AUTO_TEST_CASE(reads_a_file_of_which_no_page_is_present) {
  const FilePage page;
  const Other other([&] { page.drop(); });
  Budget budget;
  MemoryReader reader(budget);
  std::vector<std::byte> read(4);
  BOOST_TEST(reader.read(other.pid, page.avma(), read) == 4u);
  BOOST_TEST((read[1] == std::byte{'E'} && read[3] == std::byte{'F'}));
}

BOOST_AUTO_TEST_CASE(who_may_not_spend_has_only_pages_that_are_present) {
  const FilePage page;
  const Pages pages;
  const Other other([&] { page.drop(); });
  Budget::Limits limits = Budget::kUsual;
  limits[static_cast<std::size_t>(Resource::kCpuNs)].most = 1;
  Budget budget(limits);
  MemoryReader reader(budget);
  std::vector<std::byte> read(kPage);
  BOOST_TEST(reader.read(other.pid, pages.avma(), read) == kPage);
  BOOST_TEST(budget.losses().empty());
  BOOST_TEST(reader.read(other.pid, page.avma(), read) == 0u);
  BOOST_TEST(budget.losses().size() == 1u);
}

BOOST_AUTO_TEST_CASE(does_not_wait_for_a_userfaultfd) {
  const Pages pages;
  bool is_left = false;
  {
    const Pages probe;
    is_left = leave_to_userfaultfd(probe.start + kPage);
  }
  if (!is_left) {
    BOOST_TEST_MESSAGE("skipped: userfaultfd(2) is not allowed here");
    return;
  }
  const Other other([&] { leave_to_userfaultfd(pages.start + kPage); });
  Budget budget;
  MemoryReader reader(budget);
  std::vector<std::byte> read(2 * kPage);
  BOOST_TEST(reader.read(other.pid, pages.avma(), read) == kPage);
  BOOST_TEST(reader.read(other.pid, pages.avma() + kPage, read) == 0u);
}

BOOST_AUTO_TEST_CASE(a_process_that_has_ended_has_no_memory) {
  const Pages pages;
  Other other;
  const pid_t pid = other.pid;
  Budget budget;
  MemoryReader reader(budget);
  std::vector<std::byte> read(10);
  BOOST_TEST(reader.read(pid, pages.avma(), read) == 10u);
  other.end();
  BOOST_TEST(reader.read(pid, pages.avma(), read) == 0u);
}

BOOST_AUTO_TEST_CASE(a_reading_process_starts_again_after_its_end) {
  const Pages pages;
  const Other other;
  ReadingProcess process;
  std::vector<std::byte> read(2 * kPage + 1);
  BOOST_TEST(process.read(other.pid, pages.avma(), read).value() == 2 * kPage);
  BOOST_TEST(process.read(other.pid, pages.avma() + 2 * kPage, read).value() == 0u);
  BOOST_REQUIRE(process.pid() > 0);
  ::kill(process.pid(), SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(process.pid()), &ended, WEXITED | WNOWAIT);
  BOOST_TEST(process.read(other.pid, pages.avma() + 5, read).value() == 2 * kPage - 5);
}

BOOST_AUTO_TEST_SUITE_END()
