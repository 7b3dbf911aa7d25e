// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/carried.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/temp_dir.h"

using pe::inprocess::is_sanitized;
using pe::inprocess::is_sanitized_command;

BOOST_AUTO_TEST_SUITE(sanitized_program)

namespace {

template <typename T>
void add(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An ELF program (gABI, chapters 4 and 5) of headers, dynamic section and strings, loaded at
/// 0x1000, that asks for `libraries`.
std::string program_needing(const std::vector<std::string>& libraries) {
  constexpr std::uint64_t kHeaders = 64 + 2 * 56, kEntry = 16, kLoadedAt = 0x1000;
  const std::uint64_t strings_at = kHeaders + kEntry * (libraries.size() + 2);
  std::string strings(1, '\0'), entries;
  for (const std::string& library : libraries) {
    add(entries, std::uint64_t{1});  // DT_NEEDED
    add(entries, std::uint64_t{strings.size()});
    strings += library + '\0';
  }
  for (const std::uint64_t number : {std::uint64_t{5}, kLoadedAt + strings_at, std::uint64_t{0},
                                     std::uint64_t{0}})  // DT_STRTAB, DT_NULL
    add(entries, number);
  std::string file(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
      16);
  add(file, std::uint16_t{3});   // ET_DYN
  add(file, std::uint16_t{62});  // EM_X86_64
  add(file, std::uint32_t{1});
  for (const std::uint64_t number : {0, 64, 0})  // e_entry, e_phoff, e_shoff
    add(file, number);
  add(file, std::uint32_t{0});
  for (const int number : {64, 56, 2, 0, 0, 0})  // e_ehsize, e_phentsize, e_phnum, ...
    add(file, static_cast<std::uint16_t>(number));
  const std::uint64_t size = strings_at + strings.size();
  add(file, std::uint64_t{1} | std::uint64_t{5} << 32U);  // PT_LOAD, to be read and executed
  for (const std::uint64_t number : {std::uint64_t{0}, kLoadedAt, kLoadedAt, size, size, kLoadedAt})
    add(file, number);
  add(file, std::uint64_t{2} | std::uint64_t{4} << 32U);  // PT_DYNAMIC
  for (const std::uint64_t number :
       {kHeaders, kLoadedAt + kHeaders, kLoadedAt + kHeaders, std::uint64_t{entries.size()},
        std::uint64_t{entries.size()}, std::uint64_t{8}})
    add(file, number);
  return file + entries + strings;
}

const std::vector<std::string> kSanitized{"libasan.so.8", "libc.so.6"}, kPlain{"libc.so.6"};

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_is_told_by_the_libraries_that_it_asks_for) {
  const pe::testing::TempDir dir;
  const std::string program = dir.file("a", program_needing(kSanitized));
  BOOST_TEST(is_sanitized(AT_FDCWD, program.c_str()));
  BOOST_TEST(is_sanitized(pe::Fd(::open(program.c_str(), O_RDONLY)).get()));
  const std::string late =
      dir.file("b", program_needing({"libm.so.6", "libclang_rt.asan-x86_64.so"}));
  BOOST_TEST(is_sanitized(AT_FDCWD, late.c_str()));
  BOOST_TEST(!is_sanitized(AT_FDCWD, dir.file("c", program_needing(kPlain)).c_str()));
  BOOST_TEST(!is_sanitized(AT_FDCWD, (dir / "none").c_str()));
  BOOST_TEST(!is_sanitized(AT_FDCWD, "/"));
  BOOST_TEST(!is_sanitized(AT_FDCWD, nullptr));
}

BOOST_AUTO_TEST_CASE(of_a_script_the_interpreter_counts) {
  const pe::testing::TempDir dir;
  const std::string program = dir.file("a", program_needing(kSanitized));
  const std::string script = dir.file("script", "#! " + program + " -x\n");
  BOOST_TEST(is_sanitized(AT_FDCWD, script.c_str()));
  BOOST_TEST(is_sanitized(AT_FDCWD, dir.file("more", "#!" + script).c_str()));
  BOOST_TEST(!is_sanitized(AT_FDCWD, dir.file("other", "#!/nowhere\n").c_str()));
  BOOST_TEST(!is_sanitized(AT_FDCWD, dir.file("own", "#!" + (dir / "own") + "\n").c_str()));
}

BOOST_AUTO_TEST_CASE(a_command_is_looked_for_in_the_path) {
  const pe::testing::TempDir dir;
  const std::string before = std::getenv("PATH");
  ::chmod(dir.file("pe-sanitized", program_needing(kSanitized)).c_str(), 0700);
  ::setenv("PATH", ("/nowhere::" + (dir / "") + ":/bin").c_str(), 1);
  const bool is_found = is_sanitized_command("pe-sanitized");
  const bool is_other = is_sanitized_command("true");
  ::setenv("PATH", before.c_str(), 1);
  BOOST_TEST(is_found);
  BOOST_TEST(!is_other);
  BOOST_TEST(is_sanitized_command((dir / "pe-sanitized").c_str()));
  BOOST_TEST(!is_sanitized_command(""));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_off_is_none) {
  const pe::testing::TempDir dir;
  const std::string whole = program_needing(kSanitized);
  const std::size_t name_ends = whole.find("libasan.so") + 10;
  for (std::size_t size = 0; size < name_ends; ++size)
    BOOST_TEST(!is_sanitized(AT_FDCWD, dir.file("cut", whole.substr(0, size)).c_str()));
}

BOOST_AUTO_TEST_CASE(who_says_that_the_order_is_not_verified_takes_any) {
  const char* const with[] = {"A=1", "ASAN_OPTIONS=x=1:verify_asan_link_order=0", nullptr};
  const char* const without[] = {"ASAN_OPTIONS=verify_asan_link_order=1", nullptr};
  BOOST_TEST(pe::inprocess::takes_any_order(with));
  BOOST_TEST(!pe::inprocess::takes_any_order(without));
  BOOST_TEST(!pe::inprocess::takes_any_order(nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
