// SPDX-License-Identifier: MIT

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/costly.h"
#include "support/stacktop.h"
#include "support/temp_dir.h"

using pe::testing::stacktop;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string frames(const std::string& name, int count) {
  std::string text = name;
  for (int i = 1; i < count; ++i)
    text += ";" + name;
  return text;
}

constexpr const char* kProfile =
    "app;main;parse;read 30\n"
    "app;main;parse;read;copy 20\n"
    "app;main;write;copy 40\n"
    "app;main 10\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(stacktop_tool)

BOOST_AUTO_TEST_CASE(functions_are_sorted_by_what_ends_in_them) {
  const auto r = stacktop({}, kProfile);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "");
  BOOST_TEST(r.out ==
             " self % self total % total  function\n"
             " 60.00%   60  60.00%    60  copy\n"
             " 30.00%   30  50.00%    50  read\n"
             " 10.00%   10 100.00%   100  main\n"
             "  0.00%    0 100.00%   100  app\n"
             "  0.00%    0  50.00%    50  parse\n"
             "  0.00%    0  40.00%    40  write\n");
}

BOOST_AUTO_TEST_CASE(what_is_left_out_is_told) {
  const auto r = stacktop({"-n", "1", "--total"}, kProfile);
  BOOST_TEST(r.out ==
             " self % self total % total  function\n"
             "  0.00%    0 100.00%   100  app\n"
             "(5 more functions: 100.00% self)\n");
  BOOST_TEST(contains(stacktop({"--percent-limit", "60"}, kProfile).out, "(5 more functions: 40"));
  BOOST_TEST(!contains(stacktop({"-n", "0"}, kProfile).out, "more"));
}

BOOST_AUTO_TEST_CASE(a_stack_counts_once_for_a_function_that_calls_itself) {
  const auto r = stacktop({"--tsv"}, "a;f;f;g;f 3\nf 1\na;g;f 2\n");
  BOOST_TEST(r.out ==
             "self\tself_percent\ttotal\ttotal_percent\tname\n"
             "6\t100.0000\t6\t100.0000\tf\n"
             "0\t0.0000\t5\t83.3333\ta\n"
             "0\t0.0000\t5\t83.3333\tg\n");
}

BOOST_AUTO_TEST_CASE(callers_add_up_to_the_total) {
  const auto r = stacktop({"--callers", "copy"}, kProfile);
  BOOST_TEST(r.out ==
             "callers of copy\n"
             "total 60 (60.00%), self 60 (60.00%)\n\n"
             "total % total  caller\n"
             " 40.00%    40  write\n"
             " 20.00%    20  read\n");
}

BOOST_AUTO_TEST_CASE(a_recursive_call_has_the_outermost_caller_and_the_innermost_callee) {
  constexpr const char* kRecursive = "a;f;g;f;h 3\nf;f 2\n";
  BOOST_TEST(stacktop({"--callers", "f", "--tsv"}, kRecursive).out ==
             "total\ttotal_percent\tname\n3\t60.0000\ta\n2\t40.0000\t[no caller]\n");
  BOOST_TEST(stacktop({"--callees", "f", "--tsv"}, kRecursive).out ==
             "total\ttotal_percent\tname\n3\t60.0000\th\n2\t40.0000\t[itself]\n");
}

BOOST_AUTO_TEST_CASE(a_name_is_taken_before_an_expression) {
  BOOST_TEST(contains(stacktop({"--callers", "read"}, "a;read 1\nb;reader 1\n").out, "of read\n"));
  BOOST_TEST(
      contains(stacktop({"--callers", "read"}, "a;read_[k] 1\nb;reader 1\n").out, "of read_[k]\n"));
  BOOST_TEST(
      contains(stacktop({"--callers", "^rea"}, "a;read 1\nb;reader 1\n").out, "of read, reader\n"));
  BOOST_TEST(
      contains(stacktop({"--callees", "operator()(int)"}, "a;operator()(int);b 1\n").out, " b\n"));
}

BOOST_AUTO_TEST_CASE(what_is_no_expression_is_looked_for_as_it_stands) {
  const auto r = stacktop({"--callers", "operator[]"}, "a;V::operator[](int) 1\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.out, "of V::operator[](int)\n"));
  BOOST_TEST(stacktop({"--callers", "a("}, kProfile).err ==
             "stacktop: --callers: no function has this name or matches it: 'a('\n");
}

BOOST_AUTO_TEST_CASE(lines_are_as_wide_as_is_asked_for) {
  const auto r = stacktop({"--columns", "50"}, std::string(60, 'f') + "::last 1\n");
  const std::string line = r.out.substr(r.out.find('\n') + 1);
  BOOST_TEST(line.size() == 51U);
  BOOST_TEST(contains(line, "..."));
  BOOST_TEST(line.ends_with("::last\n"));
}

BOOST_AUTO_TEST_CASE(a_function_that_is_not_there_is_an_error) {
  const auto r = stacktop({"--callers", "none"}, kProfile);
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err == "stacktop: --callers: no function has this name or matches it: 'none'\n");
}

BOOST_AUTO_TEST_CASE(a_hierarchy_merges_equal_callees_of_all_calls) {
  const auto r = stacktop({"--callees", "f", "--tree"}, "a;f;x;y 4\nb;f;x;y 3\nb;f;z 2\nb;f 1\n");
  BOOST_TEST(r.out ==
             "callee hierarchy of f\n"
             "total 10 (100.00%), self 1 (10.00%)\n\n"
             " self % self total % total  function\n"
             " 10.00%    1 100.00%    10  f\n"
             "  0.00%    0  70.00%     7  |- x\n"
             " 70.00%    7  70.00%     7  |  y\n"
             " 20.00%    2  20.00%     2  `- z\n");
}

BOOST_AUTO_TEST_CASE(a_hierarchy_of_callers_goes_to_the_root) {
  const auto r = stacktop({"--callers", "f", "--tree", "--tsv"}, "m;a;f 4\nm;b;f;x 3\nf 1\n");
  BOOST_TEST(r.out ==
             "total\ttotal_percent\tdepth\tname\n8\t100.0000\t0\tf\n4\t50.0000\t1\ta\n"
             "4\t50.0000\t2\tm\n3\t37.5000\t1\tb\n3\t37.5000\t2\tm\n");
}

BOOST_AUTO_TEST_CASE(hierarchies_of_the_hottest_are_cut_off) {
  const auto r =
      stacktop({"--tree", "-n", "2", "--percent-limit", "30", "--max-depth", "2"}, kProfile);
  BOOST_TEST(r.out ==
             " self % self total % total  function\n  0.00%    0 100.00%   100  app\n 10.00%   10 "
             "100.00%   100  `- main\n  0.00%    0  50.00%    50     |- parse\n  0.00%    0  "
             "40.00%    40     `- write\n\n 60.00%   60  60.00%    60  copy\n(2 branches continue "
             "below the maximum depth: --max-depth)\n");
}

BOOST_AUTO_TEST_CASE(branches_that_go_on_below_the_greatest_depth_are_told) {
  const auto go_on = [](const char* profile) {
    return stacktop({"--callees", "f", "--tree", "--max-depth", "1"}, profile).out;
  };
  BOOST_TEST(!contains(go_on("f;a 5\nf;b 5\n"), "max-depth"));
  BOOST_TEST(!contains(go_on("f;a 996\nf;a;b 4\n"), "max-depth"));  // too small to be shown
  BOOST_TEST(contains(go_on("f;a;b 5\nf;a;c 5\nf;d 1\n"),
                      "\n(1 branch continues below the maximum depth: --max-depth)\n"));
  BOOST_TEST(contains(
      stacktop({"--callees", "f", "--tree", "--max-depth", "1", "--json"}, "f;a;b 5\nf;c;d 5\n")
          .out,
      "\"deeper\":2}"));
}

BOOST_AUTO_TEST_CASE(what_a_hierarchy_has_told_begins_no_other) {
  const auto r = stacktop({"--tree", "--tsv"}, "_start;main;a;copy 50\n_start;main;b;copy 50\n");
  BOOST_TEST(r.out ==
             "self\tself_percent\ttotal\ttotal_percent\tdepth\tname\n"
             "0\t0.0000\t100\t100.0000\t0\t_start\n"
             "0\t0.0000\t100\t100.0000\t1\tmain\n"
             "0\t0.0000\t50\t50.0000\t2\ta\n"
             "50\t50.0000\t50\t50.0000\t3\tcopy\n"
             "0\t0.0000\t50\t50.0000\t2\tb\n"
             "50\t50.0000\t50\t50.0000\t3\tcopy\n"
             "100\t100.0000\t100\t100.0000\t0\tcopy\n");
}

BOOST_AUTO_TEST_CASE(stacks_of_100000_frames_are_no_deeper_than_others, *pe::tests::costly()) {
  const std::string deep = "x;" + frames("f", 100'000) + " 5\n";
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--total"},
                                             {"--tree", "--max-depth", "10000", "-n", "1"},
                                             {"--callers", "f", "--tree"},
                                             {"--callees", "f", "--tree"}}) {
    const auto r = stacktop(args, deep);
    BOOST_TEST(r.status == 0);
    BOOST_TEST(contains(r.out, "100.00%"));
  }
}

BOOST_AUTO_TEST_CASE(trees_have_a_greatest_depth) {
  const auto r = stacktop({"--tree", "--max-depth", "10001"}, "a 1\n");
  BOOST_TEST(r.status == 2);
  BOOST_TEST(contains(r.err, "not a number of frames from 1 to 10000"));
}

BOOST_AUTO_TEST_CASE(groups_are_told_instead_of_functions) {
  BOOST_TEST(stacktop({"--by", "comm", "--tsv"}, "j-1/2;a 3\nj-1/3;b 4\nk 1\n").out ==
             "total\ttotal_percent\tname\n7\t87.5000\tj\n1\t12.5000\tk\n");
  BOOST_TEST(stacktop({"--by", "thread", "--tsv"}, "j-1/2;a 3\nj-1/3;b 5\n").out ==
             "total\ttotal_percent\tname\n5\t62.5000\tj-1/3\n3\t37.5000\tj-1/2\n");
  const auto r = stacktop({"--by", "module", "--tsv"}, "m;x_[k];y_[k] 3\nm;z 1\n");
  BOOST_TEST(r.out ==
             "self\tself_percent\ttotal\ttotal_percent\tname\n3\t75.0000\t3\t75.0000\t[kernel]\n"
             "1\t25.0000\t4\t100.0000\t[module not in the text]\n");
  BOOST_TEST(contains(r.err, "25.0 % of the counts end in frames without a module"));
}

BOOST_AUTO_TEST_CASE(markdown_is_a_table_whatever_the_names) {
  BOOST_TEST(stacktop({"--markdown", "-n", "2"}, "# unit: us\na;b|`c 3\na;d 1\n").out ==
             "| self, us | % | total, us | % | name |\n"
             "| ---: | ---: | ---: | ---: | --- |\n"
             "| 3 | 75.00 | 3 | 75.00 | `` b\\|`c `` |\n"
             "| 1 | 25.00 | 1 | 25.00 | `d` |\n"
             "\n1 more, of 4 us\n");
  BOOST_TEST(contains(stacktop({"--markdown", "--tree"}, "a;b 3\n").out, "| 1 | ..`b` |\n"));
  BOOST_TEST(stacktop({"--markdown", "--json"}, "").err ==
             "stacktop: --json, --markdown: cannot be combined (see --help)\n");
  BOOST_TEST(stacktop({"--markdown", "--spans"}, "").err ==
             "stacktop: --markdown: cannot be combined with --spans (see --help)\n");
}

BOOST_AUTO_TEST_CASE(json_holds_every_digit) {
  const auto r = stacktop({"--json"}, "a;b\"\xFF 18446744073709551614.5\n");
  BOOST_TEST(
      r.out ==
      "{\"version\":1,\"view\":\"functions\",\"unit\":\"samples\",\"counted\":18446744073709551614."
      "5,\n"
      " \"left_out\":{\"lines\":0,\"count\":0,\"deeper\":0},\n \"lines\":[\n"
      "  {\"self\":18446744073709551614.5,\"self_percent\":100.0000,"
      "\"total\":18446744073709551614.5,\"total_percent\":100.0000,\"name\":\"b\\\"\uFFFD\"},\n"
      "  {\"self\":0,\"self_percent\":0.0000,"
      "\"total\":18446744073709551614.5,\"total_percent\":100.0000,\"name\":\"a\"}\n ]}\n");
}

BOOST_AUTO_TEST_CASE(names_do_not_reach_a_terminal_raw) {
  for (const char* format : {"--color=never", "--tsv"}) {
    const auto r = stacktop({format}, "a;\033]0;evil\a\x9b 1\n");
    BOOST_TEST(r.out.find_first_of("\033\a\x9b") == std::string::npos);
    BOOST_TEST(contains(r.out, "\\x1b]0"));
  }
}

BOOST_AUTO_TEST_CASE(colour_can_be_asked_for) {
  BOOST_TEST(contains(stacktop({"--color", "always"}, kProfile).out, "\033[31m 60.00%\033[0m"));
  BOOST_TEST(!contains(stacktop({}, kProfile).out, "\033"));
}

BOOST_AUTO_TEST_CASE(hints_are_said_to_be_hints) {
  const pe::testing::TempDir dir;
  const auto own = dir.file("own", "^co\n  Copy less.\n");
  const auto r = stacktop({"--hints-file", own, "-n", "1"}, kProfile);
  BOOST_TEST(r.err == "");
  BOOST_TEST(contains(r.out,
                      "\nHints, based on the functions' names alone. Measure before and after.\n  "
                      "copy\n      Copy less.\n"));
  BOOST_TEST(
      contains(stacktop({"--hints-file", own, "--tsv"}, kProfile).out, "copy\tCopy less.\n"));
  BOOST_TEST(contains(stacktop({"--hints-file", own, "--json"}, kProfile).out,
                      "\"name\":\"copy\",\"hint\":\"Copy less.\""));
}

BOOST_AUTO_TEST_CASE(the_installed_hints_are_whole_and_know_what_is_often_hot) {
  for (const char* name : {"__memmove_avx_unaligned_erms",
                           "_int_malloc",
                           "cfree",
                           "asm_exc_page_fault_[k]",
                           "simdjson::parse",
                           "std::_Hash_bytes",
                           "pthread_mutex_lock",
                           "__vfprintf_internal",
                           "std::ostream::flush",
                           "std::_Rb_tree_increment",
                           "std::__introsort_loop<int>",
                           "std::__detail::_Executor::_M_dfs",
                           "__cxa_throw",
                           "read",
                           "ksys_write_[k]",
                           "deflate_fast",
                           "__memset_avx2_unaligned",
                           "filemap_read_[k]",
                           "flush_tlb_mm_range_[k]",
                           "gcDrain",
                           "__dynamic_cast",
                           "strptime",
                           "spdlog::logger::log",
                           "clock_nanosleep",
                           "cpu_relax",
                           "aesni_ctr32_encrypt_blocks",
                           "copy_user_generic_[k]",
                           "do_user_addr_fault_[k]",
                           "G1ParScanThreadState::trim_queue",
                           "[unknown]",
                           "strlen",
                           "exp"}) {
    const auto r = stacktop({"--hints", "--tsv"}, std::string(name) + " 1\n");
    BOOST_TEST(r.err == "");
    BOOST_TEST(!contains(r.out, "\t\n"), name << " has no hint");
  }
}

BOOST_AUTO_TEST_CASE(hints_do_not_take_parts_of_other_words) {
  for (const char* name :
       {"operand_of", "catalog::find", "round_robin", "exec_update", "cost_model", "parse_args"})
    BOOST_TEST(contains(stacktop({"--hints", "--tsv"}, std::string(name) + " 1\n").out, "\t\n"),
               name << " has a hint");
}

BOOST_AUTO_TEST_CASE(what_counts_little_gets_no_hint) {
  BOOST_TEST(contains(stacktop({"--hints", "--tsv"}, "main 99\nmalloc 1\n").out, "malloc\tAlloc"));
  BOOST_TEST(contains(stacktop({"--hints", "--tsv"}, "main 999\nmalloc 1\n").out, "malloc\t\n"));
}

BOOST_AUTO_TEST_CASE(a_hint_file_that_is_missing_is_an_error) {
  const auto r = stacktop({"--hints-file", "/nonexistent/hints"}, kProfile);
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stacktop: /nonexistent/hints: No such file or directory\n");
}

BOOST_AUTO_TEST_CASE(lines_that_are_not_folded_are_stepped_over) {
  const auto r = stacktop({"--tsv"}, "# comment\na 1\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(contains(r.err, "ignored 1 line that is not \"stack count\"; first: stdin:1"));
  BOOST_TEST(contains(r.out, "1\t100.0000\ta\n"));
}

BOOST_AUTO_TEST_CASE(stacks_of_only_empty_frames_are_reported) {
  const auto r = stacktop({}, "; 80\nmain;f 20\n");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err ==
             "stacktop: 80.0 % of the counts are in stacks with only empty frames, which "
             "no line shows\n");
}

BOOST_AUTO_TEST_CASE(no_stacks_are_an_empty_table) {
  const auto r = stacktop({}, "");
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out == " self % self total % total  function\n");
  BOOST_TEST(r.err == "stacktop: no stack with a count in the input\n");
  BOOST_TEST(stacktop({"--json"}, "a 0\n").status == 0);
  BOOST_TEST(contains(stacktop({}, "other\na 0\n").err, "with stackfold first)\n"));
}

BOOST_AUTO_TEST_CASE(nothing_but_other_lines_is_a_failure) {
  const auto r = stacktop({}, "other\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "");
  BOOST_TEST(stacktop({"-q"}, "other\n").err ==
             "stacktop: no stack with a count in the input (fold a profiler's text with stackfold "
             "first)\n");
}

BOOST_AUTO_TEST_CASE(of_a_sample_stream_is_said_what_to_do_and_nothing_else) {
  const auto r = stacktop({}, std::string("PERFILE2\x10\0\1\n\2\n", 13));
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err ==
             "stacktop: stdin: a sample stream or perf.data file, not folded text (fold it: "
             "pe-symbolize FILE | stackfold)\n");
}

BOOST_AUTO_TEST_CASE(of_two_counts_the_second_is_told) {
  const auto r = stacktop({"--tsv"}, "a 5 1\nb 6 3\n");
  BOOST_TEST(contains(r.out, "3\t75.0000\t3\t75.0000\tb\n"));
  BOOST_TEST(r.err ==
             "stacktop: two counts per line: the second is shown (flamediff compares them)\n");
}

BOOST_AUTO_TEST_CASE(refuses_what_makes_no_sense) {
  const auto error = [](const std::vector<std::string>& args) {
    const auto r = stacktop(args, kProfile);
    BOOST_TEST(r.status == 2);
    return r.err;
  };
  BOOST_TEST(error({"-n", "-1"}) == "stacktop: --top: not a number of lines: '-1' (see --help)\n");
  BOOST_TEST(error({"--json", "--tsv"}) ==
             "stacktop: --json, --tsv: cannot be combined (see --help)\n");
  BOOST_TEST(error({"--by", "x"}) ==
             "stacktop: --by: not one of comm, module, thread: 'x' (see --help)\n");
  BOOST_TEST(error({"--columns", "0"}) ==
             "stacktop: --columns: not a number of columns: '0' (see --help)\n");
  BOOST_TEST(contains(error({"--percent-limit", "101"}), "not a percentage"));
  BOOST_TEST(contains(error({"--callers", "a", "--callees", "b"}), "cannot be combined"));
}

BOOST_AUTO_TEST_CASE(a_wait_ends_at_the_innermost_function_of_the_program) {
  const auto name = [](const std::string& stack) {
    const auto r = stacktop({"--tsv", "-n", "1"}, stack + " 7\n");
    return r.out.substr(r.out.rfind('\t') + 1);
  };
  BOOST_TEST(name("s;main;audit;pthread_mutex_lock_[l];futex_wait_[k];[lock]_[o]") ==
             "audit: lock\n");
  BOOST_TEST(name("s;main;poll_[l];schedule_[k];[I/O]_[o];[still waiting]") == "main: I/O\n");
  BOOST_TEST(name("s;main;eval;rest:a.py_[s];pysleep;schedule_[k];[sleep]_[o]") ==
             "rest:a.py: sleep\n");
  // Where nothing is of the program, a library is; a thread may have no stack.
  BOOST_TEST(name("s;start_[l];loop_[l];schedule_[k];[sleep]_[o]") == "loop: sleep\n");
  BOOST_TEST(name("kworker;worker_[k];schedule_[k];[other wait]_[o]") == "kworker: other wait\n");
  BOOST_TEST(name("s;[waiting for a CPU]_[o]") == "s: waiting for a CPU\n");
  // Inlined functions belong to their callers; those that ended in a jump may be of a library.
  BOOST_TEST(name("s;main;wait_[l];futex_[i];schedule_[k];[lock]_[o]") == "main: lock\n");
  BOOST_TEST(name("s;main;get_[i];wait_[l];schedule_[k];[lock]_[o]") == "get: lock\n");
  BOOST_TEST(name("s;main;flush_[t];write_[l];schedule_[k];[I/O]_[o]") == "main: I/O\n");
  BOOST_TEST(name("s;main;f;[sleep]") == "f: sleep\n");
  BOOST_TEST(name("s;main_[o];poll_[o]") == "poll: waiting\n");
  BOOST_TEST(name("# event: offcpu\ns;main;poll_[l];schedule_[k]") == "main: waiting\n");
}

BOOST_AUTO_TEST_CASE(other_stacks_are_not_cut) {
  for (const char* stack : {"s;main;[unknown]", "s;main;f;schedule_[k]", "[lock]", "s;main;f_[w]",
                            "# event: offcpu-held\ns;main;schedule_[k]"})
    BOOST_TEST(!contains(stacktop({"--tsv"}, std::string(stack) + " 7\n").out, ": "), stack);
  const char* chain = "s;main;poll_[l];[I/O]_[o];--;wake 7\n";
  BOOST_TEST(contains(stacktop({}, chain).out, " wake\n"));
  // Who asks for a function or for modules sees all of the stack.
  const char* wait = "s;main;poll_[l];schedule_[k];[I/O]_[o] 7\n";
  BOOST_TEST(contains(stacktop({"--callers", "schedule"}, wait).out, " poll_[l]\n"));
  BOOST_TEST(!contains(stacktop({"--by", "module"}, wait).out, "I/O:"));
}

BOOST_AUTO_TEST_CASE(running_and_waiting_have_columns_of_their_own) {
  const char* both = "s;main;f 10.5\ns;main;f;poll_[l];[I/O]_[o] 20\n";
  BOOST_TEST(stacktop({}, both).out ==
             " self % self total % total   on CPU waiting  function\n"
             " 65.57%   20  65.57%    20        0      20  f: I/O\n"
             " 34.43% 10.5 100.00%  30.5     10.5      20  f\n"
             "  0.00%    0 100.00%  30.5     10.5      20  s\n"
             "  0.00%    0 100.00%  30.5     10.5      20  main\n");
  BOOST_TEST(contains(stacktop({"--json"}, both).out, R"("on_cpu":10.5)"));
  BOOST_TEST(stacktop({"--by", "comm", "--tsv"}, both).out ==
             "total\ttotal_percent\ton_cpu\twaiting\tname\n30.5\t100.0000\t10.5\t20\ts\n");
  for (const char* one : {"s;main 10\n", "s;main;[I/O]_[o] 20\n"})
    BOOST_TEST(!contains(stacktop({}, one).out, "on CPU"), one);
}

BOOST_AUTO_TEST_SUITE_END()
