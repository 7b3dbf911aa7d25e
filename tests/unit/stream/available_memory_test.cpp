// SPDX-License-Identifier: MIT
#include "stream/proc/own_rights.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.h"

namespace pe::stream {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMebibyte = 1 << 20;

/// Made-up folders like /proc and /sys/fs/cgroup.
class Machine {
 public:
  explicit Machine(const std::string& own_groups) {
    write("proc/meminfo", "MemTotal:  9000000 kB\nMemAvailable:     1048576 kB\n");
    write("proc/self/cgroup", own_groups);
  }
  void write(const std::string& name, const std::string& text) const {
    const fs::path path = dir_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::uint64_t available() const {
    return available_memory(dir_ / "proc", dir_ / "groups");
  }

 private:
  testing::TempDir dir_;
};

BOOST_AUTO_TEST_SUITE(available_memory_test)

BOOST_AUTO_TEST_CASE(without_groups_the_machine_limits_it) {
  BOOST_TEST(Machine("0::/a\n").available() == 1024 * kMebibyte);
}

BOOST_AUTO_TEST_CASE(the_group_with_the_least_limits_it) {
  const Machine machine("0::/a/b\n");
  machine.write("groups/a/b/memory.max", "max\n");
  machine.write("groups/a/b/memory.current", "1048576\n");
  machine.write("groups/a/memory.max", "67108864\n");
  machine.write("groups/a/memory.current", "20971520\n");
  BOOST_TEST(machine.available() == 44 * kMebibyte);
  machine.write("groups/a/memory.stat", "anon 5\ninactive_file 4194304\n");
  BOOST_TEST(machine.available() == 48 * kMebibyte);
}

BOOST_AUTO_TEST_CASE(groups_of_version_1_have_other_names) {
  const Machine machine("4:memory:/a\n0::/\n");
  machine.write("groups/memory/a/memory.limit_in_bytes", "67108864\n");
  machine.write("groups/memory/a/memory.usage_in_bytes", "20971520\n");
  machine.write("groups/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 1048576\n");
  BOOST_TEST(machine.available() == 45 * kMebibyte);
}

BOOST_AUTO_TEST_CASE(in_a_container_the_root_is_its_own_group) {
  const Machine machine("0::/of/the/host\n");
  machine.write("groups/memory.max", "67108864\n");
  machine.write("groups/memory.current", "99999999\n");
  BOOST_TEST(machine.available() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pe::stream
