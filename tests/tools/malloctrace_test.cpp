// SPDX-License-Identifier: MIT
#include "malloctrace/malloctrace.h"

#include <sys/stat.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>

#include "malloctrace/options.h"
#include "recording/inprocess/command.h"
#include "support/run_tool.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

pe::testing::Result malloctrace(const std::vector<std::string>& args) {
  return pe::testing::run_tool(pe::kMalloctrace, args);
}

/// The message of a refused command line, without the tool's name and the pointer to --help.
std::string malloctrace_refusal(const std::vector<std::string>& args) {
  const auto r = malloctrace(args);
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.out == "");
  std::string text = r.err;
  BOOST_TEST(text.starts_with("malloctrace: "));
  BOOST_TEST(text.ends_with(" (see --help)\n"));
  return text.substr(13, text.size() - 13 - 14);
}

/// Why malloctrace refuses to trace a program, without the path; "" if it accepts the program.
std::string why_not(const std::string& program) {
  try {
    pe::malloctrace::check_can_be_traced(pe::inprocess::find_program(program));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.substr(text.find(": ") + 2);
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(malloctrace_tool)

BOOST_AUTO_TEST_CASE(a_command_is_needed) {
  BOOST_TEST(malloctrace_refusal({}) == "nothing to trace: give a command, or a process (--pid)");
  BOOST_TEST(malloctrace_refusal({"-o", "x"}) ==
             "nothing to trace: give a command, or a process (--pid)");
}

BOOST_AUTO_TEST_CASE(options_are_taken_at_their_word) {
  const auto refused = [](const std::vector<std::string>& options) {
    std::vector<std::string> args = options;
    args.insert(args.end(), {"--", "true"});
    return malloctrace_refusal(args);
  };
  BOOST_TEST(refused({"--sample", "12x"}) ==
             "--sample: not a number of bytes up to 1024G, such as 512K: '12x'");
  BOOST_TEST(refused({"--sample", "K"}) ==
             "--sample: not a number of bytes up to 1024G, such as 512K: 'K'");
  BOOST_TEST(refused({"--sample", "1025G"}) ==
             "--sample: not a number of bytes up to 1024G, such as 512K: '1025G'");
  BOOST_TEST(refused({"--max-depth", "0"}) == "--max-depth: not a positive number: '0'");
  BOOST_TEST(refused({"--max-depth", "4294967296"}) ==
             "--max-depth: not a positive number: '4294967296'");
  BOOST_TEST(refused({"--depth", "0"}) ==
             "--max-depth: not a positive number: '0'");  // its old name
  BOOST_TEST(refused({"--follow", "--no-follow"}) == "--follow, --no-follow: cannot be combined");
  BOOST_TEST(refused({"--pid", "1"}) == "--pid: cannot be combined with a command");
  BOOST_TEST(refused({"--duration", "1"}) == "--duration: only with --pid");
  BOOST_TEST(malloctrace_refusal({"--pid", "1", "--follow"}) ==
             "--follow: not with --pid: only the process itself is traced");
  BOOST_TEST(refused({"--top", "3"}) == "--top: only with --report");
  BOOST_TEST(refused({"--leak-age", "3"}) == "--leak-age: only with --report");
  BOOST_TEST(refused({"--lines"}) == "--lines: only with --report");
  BOOST_TEST(refused({"--report", "--leak-age", "x"}) ==
             "--leak-age: not a number of seconds: 'x'");
  BOOST_TEST(refused({"-o", "x", "--snapshot", "0.01"}) == "--snapshot: at least 0.1 seconds");
  BOOST_TEST(refused({"--snapshot", "1"}) ==
             "--snapshot needs --output FILE: snapshots are written to FILE.1, FILE.2 and so on");
}

BOOST_AUTO_TEST_CASE(the_library_is_told_what_was_asked_for) {
  pe::malloctrace::Options options;
  const pe::inprocess::Listener listener("name");
  const std::string to = "MALLOCTRACE=socket=" + listener.socket_name() + ",key=" + listener.key();
  ::unsetenv("LD_PRELOAD");
  BOOST_TEST(pe::malloctrace::tracing_environment(options, "/lib/p.so", listener) ==
                 (std::vector<std::string>{"LD_PRELOAD=/lib/p.so",
                                           to + ",sample=0,depth=0,follow=1,mmap=0"}),
             boost::test_tools::per_element());
  options.sample_bytes = 1024;
  options.max_depth = 7;
  options.follow = false;
  options.with_mmap = true;
  ::setenv("LD_PRELOAD", "/lib/other.so", 1);
  BOOST_TEST(pe::malloctrace::tracing_environment(options, "/lib/p.so", listener) ==
                 (std::vector<std::string>{"LD_PRELOAD=/lib/p.so:/lib/other.so",
                                           to + ",sample=1024,depth=7,follow=0,mmap=1"}),
             boost::test_tools::per_element());
  ::unsetenv("LD_PRELOAD");
}

BOOST_AUTO_TEST_CASE(programs_into_which_no_library_is_loaded_are_refused) {
  BOOST_TEST(why_not("ls") == "");
  BOOST_TEST(why_not("no-such-program") == "No such file or directory");
  BOOST_TEST(why_not("ldd") == "");  // a script
  BOOST_TEST(why_not(pe::testing::test_binary("labels_32.so")).starts_with("is a 32-bit program"));
  BOOST_TEST(why_not(pe::testing::test_binary("labels.so")).starts_with("is statically linked"));
  const pe::testing::TempDir folder;
  const std::string program = folder.file("program", "#!/bin/sh\n");
  BOOST_REQUIRE(::chmod(program.c_str(), 0755) == 0);
  BOOST_TEST(why_not(program) == "");
  if (::getuid() == 0) {
    const std::string copy = folder / "copy";
    std::filesystem::copy_file("/bin/true", copy);
    for (const std::string& path : {program, copy}) {
      BOOST_REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
      BOOST_REQUIRE(::chmod(path.c_str(), 04755) == 0);
    }
    BOOST_TEST(why_not(program) == "");  // the kernel ignores setuid on a script
    BOOST_TEST(why_not(copy).starts_with("is setuid, setgid"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
