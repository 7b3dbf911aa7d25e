// SPDX-License-Identifier: MIT
#include "languages/common/known_runtime.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/cli/closing.h"
#include "support/process_records.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(known_runtime)

namespace {

struct Machine {
  void begin_period() {}
};

/// A runtime in every file whose name ends with "runtime".  Counts how often it examines a file.
class Counting : public languages::MachineCode<Machine, int> {
 public:
  explicit Counting(Budget& budget)
      : MachineCode([](auto, const auto&) { return 0U; }, budget, languages::kJava) {}

  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t /*avma*/) override {
    opened(pid);
    return std::nullopt;
  }
  bool are_outdated(std::uint32_t /*pid*/, std::span<const unwind::Frame> /*frames*/) override {
    return false;
  }
  bool functions(std::uint32_t /*pid*/, const WalkedFrame& /*walked*/,
                 const unwind::StackView& /*stack*/,
                 std::vector<std::uint64_t>& /*addresses*/) override {
    return false;
  }

  int examined = 0, attempts = 0;
  std::string why;  ///< it cannot be opened
  bool is_open(std::uint32_t pid) { return unchanged(pid) != nullptr; }

 private:
  [[nodiscard]] bool has_name(std::string_view path) const override {
    return path.ends_with("runtime");
  }
  FoundBinary find(const objects::Image& /*image*/, bool /*has_name*/) override {
    return std::make_shared<const int>(++examined);
  }
  [[nodiscard]] std::variant<Machine, std::string> open_machine(
      languages::Memory /*memory*/, const int& /*binary*/,
      const stream::Mapping& /*mapping*/) override {
    ++attempts;
    if (!why.empty())
      return why;
    return Machine{};
  }
};

/// Process numbers that no process has: Linux assigns at most 2^22.
constexpr std::uint32_t kPid = 1U << 30, kOther = kPid + 1;

struct Followed {
  testing::TempDir folder;
  stream::History history;
  testing::ProcessRecords records{history};
  Budget budget;
  Counting runtime{budget};

  [[nodiscard]] std::string copy(std::string_view name) const {
    const std::string path = folder / name;
    std::filesystem::copy_file(testing::test_binary("libfunctions.so"), path);
    return path;
  }
  void expect(const std::string& path) {
    const auto program = objects::open_program(path);
    BOOST_REQUIRE(program);
    runtime.expect(program->path, program->image);
  }
  void map(std::uint32_t pid, const std::string& path) {
    records.map(pid, {.start = 0x7f0000000000, .size = 0x1000, .file_offset = 0}, path);
    runtime.follow(history);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_expected_file_is_examined_once) {
  Followed followed;
  const std::string path = followed.copy("runtime");
  followed.expect(path);
  BOOST_TEST(followed.runtime.examined == 1);
  followed.map(kPid, path);
  BOOST_TEST(followed.runtime.is_in(kPid));
  BOOST_TEST(followed.runtime.examined == 1);
}

BOOST_AUTO_TEST_CASE(an_expected_file_may_have_another_name) {
  Followed followed;
  const std::string path = followed.copy("runtime"), link = followed.folder / "second-runtime";
  std::filesystem::create_hard_link(path, link);
  followed.expect(path);
  followed.map(kPid, link);
  BOOST_TEST(followed.runtime.is_in(kPid));
  BOOST_TEST(followed.runtime.examined == 1);
}

BOOST_AUTO_TEST_CASE(other_files_are_examined_when_they_are_mapped) {
  Followed followed;
  const std::string path = followed.copy("runtime"), other = followed.copy("other-runtime");
  followed.expect(path);
  followed.map(kPid, other);
  BOOST_TEST(followed.runtime.is_in(kPid));
  BOOST_TEST(followed.runtime.examined == 2);
  // The path leads to a new file.
  std::filesystem::rename(followed.folder / "other-runtime", followed.folder / "old");
  std::filesystem::remove(path);
  static_cast<void>(followed.copy("runtime"));
  followed.map(kOther, path);
  BOOST_TEST(followed.runtime.is_in(kOther));
  BOOST_TEST(followed.runtime.examined == 3);
}

BOOST_AUTO_TEST_CASE(a_process_is_opened_when_its_code_is_walked_and_forgotten_when_it_ends) {
  Followed followed;
  followed.map(kPid, followed.copy("runtime"));
  BOOST_TEST(!followed.runtime.is_open(kPid));
  followed.runtime.rule(kPid, 0);
  BOOST_TEST(followed.runtime.is_open(kPid));
  followed.records.exit(kPid, kPid);
  followed.runtime.follow(followed.history);
  BOOST_TEST(!followed.runtime.is_in(kPid));
}

BOOST_AUTO_TEST_CASE(an_unknown_version_is_tried_once_and_reported_once) {
  Followed followed;
  followed.runtime.why = "Java 11";
  const std::string path = followed.copy("runtime");
  for (const std::uint32_t pid : {kPid, kOther}) {
    followed.map(pid, path);
    followed.runtime.rule(pid, 0);
    followed.runtime.rule(pid, 0);
  }
  BOOST_TEST(followed.runtime.attempts == 2);
  followed.records.exit(kPid, kPid);
  followed.runtime.follow(followed.history);
  Closing closing;
  followed.runtime.describe(closing);
  BOOST_TEST(closing.doubts ==
                 std::vector<std::string>{"Java 11 has functions without names: only native frames "
                                          "are shown; functions of Java 17 to 27 have names"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_file_without_the_name_is_not_examined) {
  Followed followed;
  followed.expect(followed.copy("program"));
  BOOST_TEST(followed.runtime.examined == 0);
}

BOOST_AUTO_TEST_SUITE_END()
