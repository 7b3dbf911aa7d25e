// Inlined functions and source lines in the output of perf script.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "objects/symbol_table.h"
#include "support/binary_symbols.h"
#include "support/stackfold.h"
#include "support/test_binary.h"

using pe::testing::Result;
using pe::testing::test_binary;

using pe::testing::stackfold;

BOOST_AUTO_TEST_SUITE(stackfold_inline)

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kHeader = "prog  12/34 [000] 1.0: 5 cycles: \n";

std::string sample(std::string_view frames) { return fmt::format("{}{}\n", kHeader, frames); }

pe::objects::Symbol symbol(const std::string& path, std::string_view name) {
  return pe::testing::symbol_of(pe::testing::image_of(path), name);
}

/// A sample for each address in box::outer(), as perf prints it for a program loaded at `base`.
/// `with_offset` adds the offset in the function: "box::outer+0x1".
std::string all_of_outer(const std::string& program, std::uint64_t base, bool with_offset) {
  const auto outer = symbol(program, "_ZN3box5outerEi");
  std::string text;
  for (std::uint64_t offset = 0; offset < outer.bytes; ++offset)
    text += sample(fmt::format("\t{:16x} box::outer{} ({})\n", base + outer.svma + offset,
                               with_offset ? fmt::format("+{:#x}", offset) : "", program));
  return text;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + " ") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inlined_functions_become_frames) {
  const auto r = stackfold({"--inline"}, all_of_outer(test_binary("inlined"), 0, true));
  BOOST_TEST(has_line(r.out, "prog;box::outer;box::Box::middle;(anonymous namespace)::innermost"));
  BOOST_TEST(r.err == "");
}

BOOST_AUTO_TEST_CASE(a_program_loaded_anywhere_has_them_too) {
  constexpr std::uint64_t kBase = 0x555555554000;
  for (const bool with_offset : {true, false}) {
    const auto text = all_of_outer(test_binary("inlined_pie"), kBase, with_offset);
    BOOST_TEST(has_line(stackfold({"--inline"}, text).out,
                        "prog;box::outer;box::Box::middle;(anonymous namespace)::innermost"));
  }
}

BOOST_AUTO_TEST_CASE(context_adds_file_and_line) {
  const auto text = all_of_outer(test_binary("inlined"), 0, true);
  BOOST_TEST(has_line(stackfold({"--inline", "--context"}, text).out,
                      "prog;box::outer:inlined.cpp:25;box::Box::middle:inlined.cpp:19;"
                      "(anonymous namespace)::innermost:inlined.cpp:8"));
  BOOST_TEST(stackfold({"--context"}, text).status == 2);
  BOOST_TEST(stackfold({"--compat", "--context"}, text).out == stackfold({"--compat"}, text).out);
}

BOOST_AUTO_TEST_CASE(inlined_functions_are_marked_if_asked) {
  const auto text = all_of_outer(test_binary("inlined"), 0, true);
  BOOST_TEST(has_line(stackfold({"--inline", "--annotate"}, text).out,
                      "prog;box::outer;box::Box::middle_[i];(anonymous namespace)::innermost_[i]"));
}

BOOST_AUTO_TEST_CASE(a_caller_is_where_its_call_is_not_where_it_returns_to) {
  const std::string program = test_binary("inlined");
  const auto plain = symbol(program, "plain");
  // Another function starts after the last instruction of plain(); the caller is still plain().
  const std::string caller =
      fmt::format("\t{:16x} plain+{:#x} ({})\n", plain.svma + plain.bytes, plain.bytes, program);
  const std::string leaf = fmt::format("\t{:16x} plain+0x0 ({})\n", plain.svma, program);
  const auto out = stackfold({"--inline", "--context"}, sample(leaf + caller)).out;
  BOOST_TEST(out.starts_with("prog;plain:inlined.cpp:"), out);
  BOOST_TEST(stackfold({"--inline", "--context"}, sample(caller)).out == "prog;plain 5\n");
}

BOOST_AUTO_TEST_CASE(what_perf_has_expanded_is_not_expanded_again) {
  const std::string program = test_binary("inlined");
  const auto outer = symbol(program, "_ZN3box5outerEi");
  const std::string frames = fmt::format(
      "\t{0:16x} innermost (inlined)\n\t{0:16x} box::outer+0x0 ({1})\n", outer.svma, program);
  BOOST_TEST(stackfold({"--inline"}, sample(frames)).out == "prog;box::outer;innermost 5\n");
}

BOOST_AUTO_TEST_CASE(modules_without_debug_information_keep_their_frames_and_are_counted) {
  const auto r =
      stackfold({"--inline"}, sample("\t1f f+0x1 (/dev/zero)\n\t2f g (/absent)\n\t3f h (/absent)\n"
                                     "\t4f j (/tmp/perf-1.map)\n\t5f k ([kernel.kallsyms])\n"));
  BOOST_TEST(r.out == "prog;k;j;h;g;f 5\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: --inline: no debug information in 2 modules; first: "
             "'/dev/zero'\n");
}

BOOST_AUTO_TEST_CASE(source_lines_follow_their_frames) {
  const std::string text = sample(
      "\t1f a+0x1 (/x)\n  a.c:1 (discriminator 3)\n\t2f b->c (/x)\n  d;r/b.c:2\n\t3f d (/x)\n  "
      "??:0\n\t4f e ([kernel])\n  [kernel][ff]\n\t5f f (/x)\n");
  const auto r = stackfold({"--lines"}, text);
  BOOST_TEST(r.out == "prog;f;e;d;b;c_[i]:d:r/b.c:2;a:a.c:1 5\n");
  BOOST_TEST(r.err == "");
  BOOST_TEST(stackfold({}, sample("\t1f a (/x)\n  a.c:1\n")).err ==
             "stackfold: ignored 1 unknown line; first: stdin:3: '  a.c:1'\n");
}

BOOST_AUTO_TEST_CASE(modules_of_the_text_go_before_names) {
  const std::string text = sample(
      "\t1f a+0x1 ([kernel.kallsyms])\n\t2f b->c (/lib/x;y.so)\n\t3f d (/tmp/perf-1.map)\n"
      "\t4f [unknown] (/lib/x.so)\n\t5f e ([vdso])\n\t6f f ([unknown])\n\t7f g (inlined)\n"
      "\t8f h ([ext4])\n");
  BOOST_TEST(stackfold({"--modules"}, text).out ==
             "prog;[ext4]`h;g;f;[vdso]`e;[x.so];[jit]`d;x:y.so`b;x:y.so`c_[i];[kernel]`a 5\n");
}

BOOST_AUTO_TEST_CASE(source_lines_of_samples_left_out_are_no_unknown_lines) {
  const std::string other = "prog  12/34 [000] 1.0: 5 faults: \n\t1f b (/x)\n  b.c:1\n\n";
  const auto r = stackfold({"--srcline"}, sample("\t1f a (/x)\n  a.c:1\n") + other);
  BOOST_TEST(r.out == "prog;a:a.c:1 5\n");
  BOOST_TEST(r.err.find("unknown") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_last_frame_without_a_blank_line_keeps_its_source_line) {
  BOOST_TEST(stackfold({"--srcline"}, std::string(kHeader) + "\t1f a (/x)\n  a.c:1").out ==
             "prog;a:a.c:1 5\n");
  BOOST_TEST(stackfold({"--srcline"}, std::string(kHeader) + "\t1f a (/x)").out == "prog;a 5\n");
}

// Expectations are the perl script's output.  It reads any line after a frame as the frame's source
// line, one for each inlined function, and drops text in brackets.
BOOST_AUTO_TEST_CASE(compat_takes_any_line_behind_a_frame_for_its_source) {
  const auto folded = [](std::string_view frames) {
    return stackfold({"--compat", "--srcline"}, sample(frames)).out;
  };
  BOOST_TEST(folded("\t1f a (/x)\n  ??:0\n\t2f g->h (/x)\n  a.c:2\n\t3f j (/x)\n") ==
             "prog;g:a.c:2;h_[i]:3f j (/x);a:??:0 5\n");
  BOOST_TEST(folded("\t1f a (/x)\n  a[1]b[2]:1 \n\t2f b ([k])\n  [k][ff]\n") ==
             "prog;b;a:ab:1 5\n");
  BOOST_TEST(folded("\t1f (a) (/x)\n\t2f b (/x)\n  in;l.c:1\n") == "prog;b:in;l.c:1 5\n");
  BOOST_TEST(folded("\t1f a (/x)\n") == "");  // it reads the blank line as the source line
}

// This ends at the first function without a name, if its module has no name either.
BOOST_AUTO_TEST_CASE(compat_reads_no_source_line_after_unknown_functions_of_unknown_modules) {
  const auto folded = [](std::string_view frames) {
    return stackfold({"--compat", "--srcline"}, sample(frames)).out;
  };
  BOOST_TEST(folded("\t1f [unknown] ([unknown])\n\t2f b (/x)\n  b.c:1\n") ==
             "prog;b:b.c:1;[unknown] 5\n");
  BOOST_TEST(folded("\t1f [unknown]+0x1 ([unknown])\n") == "prog;[unknown] 5\n");
  BOOST_TEST(folded("\t1f a->[unknown]->b ([unknown])\n  a.c:1\n\t2f c (/x)\n  c.c:1\n") ==
             "prog;c:c.c:1;a:a.c:1;[unknown]_[i];b_[i] 5\n");
  BOOST_TEST(folded("\t1f a ([unknown])\n  a.c:1\n\t2f [unknown] (/unknown)\n  u.c:1\n") ==
             "prog;[unknown]:u.c:1;a:a.c:1 5\n");
}

BOOST_AUTO_TEST_CASE(inputs_without_frame_lines_refuse_these_options) {
  for (const char* option : {"--inline", "--lines"}) {
    const auto r = stackfold({option}, "a;b 1\n");
    BOOST_TEST(r.status == 1);
    BOOST_TEST(r.err ==
               fmt::format("stackfold: stdin: {}: only for the text of perf script\n", option));
  }
  BOOST_TEST(stackfold({"--modules"}, "a;b 1\n").err ==
             "stackfold: stdin: --modules: folded text has no modules\n");
}

BOOST_AUTO_TEST_SUITE_END()
