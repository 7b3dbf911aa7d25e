// SPDX-License-Identifier: MIT
#include "stream/proc/process_table.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <array>
#include <filesystem>

#include "base/fd.h"
#include "support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

/// A process whose root is another folder.  Only root can start it.
class Contained {
 public:
  explicit Contained(const std::string& root) {
    std::array<int, 2> ready{};
    BOOST_REQUIRE(::pipe(ready.data()) == 0);
    const pe::Fd from(ready[0]);
    pe::Fd to(ready[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (::chroot(root.c_str()) == 0 && ::write(to.get(), "x", 1) == 1)
        ::pause();
      ::_exit(1);
    }
    to.close();
    char byte = 0;
    BOOST_REQUIRE(::read(from.get(), &byte, 1) == 1);
  }
  Contained(const Contained&) = delete;
  Contained& operator=(const Contained&) = delete;
  Contained(Contained&&) = delete;
  Contained& operator=(Contained&&) = delete;
  ~Contained() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool has(const std::string& path, pe::Links links = pe::Links::kFollow) const {
    return std::holds_alternative<pe::RegularFile>(pe::stream::open_in_root(pid_, path, links));
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(root_file)

BOOST_AUTO_TEST_CASE(links_of_a_container_lead_nowhere_out_of_it) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("skipped: chroot(2) needs root");
    return;
  }
  const pe::testing::TempDir dir;
  fs::create_directories(dir / "outside");
  fs::create_directories(dir / "root/tmp");
  const auto secret = dir.file("outside/secret", "1");
  BOOST_TEST(fs::exists(dir.file("root/tmp/map", "2")));
  fs::create_symlink(dir / "outside", dir / "root/out");
  fs::create_symlink("../../outside", dir / "root/tmp/up");
  fs::create_symlink("/tmp", dir / "root/own");
  fs::create_symlink("map", dir / "root/tmp/last");

  const Contained inside(dir / "root");
  BOOST_TEST(inside.has("/tmp/map"));
  BOOST_TEST(inside.has("/own/map"));
  BOOST_TEST(inside.has("/tmp/last"));
  BOOST_TEST(!inside.has("/tmp/last", pe::Links::kRefuse));
  BOOST_TEST(!inside.has("/out/secret"));
  BOOST_TEST(!inside.has("/tmp/up/secret"));
  BOOST_TEST(!inside.has("/../outside/secret"));
  BOOST_TEST(!inside.has(secret));
}

BOOST_AUTO_TEST_CASE(a_process_that_is_gone_has_no_files) {
  const auto opened = pe::stream::open_in_root(0x7ffffffe, "/etc/passwd");
  BOOST_REQUIRE(std::holds_alternative<pe::FileFailure>(opened));
  BOOST_CHECK(std::get<pe::FileFailure>(opened) == pe::FileFailure::kMissing);
}

BOOST_AUTO_TEST_SUITE_END()
