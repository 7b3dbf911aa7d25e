// Which process may name the code of a recorded one: only itself, not another that has its PID.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "pe-symbolize/pe_symbolize.h"
#include "stackfold/stackfold.h"
#include "support/run_tool.h"
#include "support/stream_builder.h"

namespace {

using pe::testing::run_tool;
using pe::testing::StreamBuilder;

constexpr auto kUserMark = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr uid_t kNobody = 65534;

/// A process of another user, with a perf map of that user.
class Stranger {
 public:
  Stranger() : pid_(::fork()) {
    if (pid_ == 0) {
      if (::setresuid(kNobody, kNobody, kNobody) == 0)
        ::pause();
      ::_exit(1);
    }
    map_ = fmt::format("/tmp/perf-{}.map", pid_);
    std::ofstream(map_) << "5000 100 hot\n";
    BOOST_REQUIRE(::chown(map_.c_str(), kNobody, kNobody) == 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  Stranger(Stranger&&) = delete;
  Stranger& operator=(Stranger&&) = delete;
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove(map_);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  [[nodiscard]] bool is_stranger() const {
    for (int i = 0; i < 500; ++i) {  // until the child has given up its user
      if (std::filesystem::exists(fmt::format("/proc/{}", pid_)) && owner() == kNobody)
        return true;
      ::usleep(10'000);
    }
    return false;
  }

 private:
  [[nodiscard]] uid_t owner() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    uid_t real = 0, effective = 0;
    for (std::string word; status >> word && word != "Uid:";) {
    }
    status >> real >> effective;
    return effective;
  }

  pid_t pid_;
  std::string map_;
};

/// Does a sample of the process's run-time code, at that time, have the name of its perf map?
bool is_named(std::uint32_t pid, std::uint64_t time_ns) {
  StreamBuilder stream;
  stream.event().comm(0, pid, pid, "js").map(0, pid, 0x4000, 0x2000, 0, "//anon");
  stream.sample({.time_ns = time_ns, .pid = pid, .tid = pid, .chain = {kUserMark, 0x5010}}).round();
  const auto symbolized = run_tool(pe::kPeSymbolize, {}, stream.text());
  return run_tool(pe::kStackfold, {}, symbolized.out).out.find("hot") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pe_symbolize_processes)

BOOST_AUTO_TEST_CASE(a_process_that_started_later_does_not_name_the_code_of_an_earlier_one) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("only root can start a process of another user");
    return;
  }
  const std::uint64_t before_ns = pe::monotonic_ns();
  ::usleep(50'000);  // the start of a process is known to 10 ms
  const Stranger stranger;
  BOOST_REQUIRE(stranger.is_stranger());
  BOOST_TEST(is_named(stranger.pid(), pe::monotonic_ns()));
  BOOST_TEST(!is_named(stranger.pid(), before_ns));
}

BOOST_AUTO_TEST_SUITE_END()
