// Functions inlined at an address, and source lines: from the stream to folded text.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include "pe-symbolize/pe_symbolize.h"
#include "stackfold/stackfold.h"
#include "support/binary_symbols.h"
#include "support/run_tool.h"
#include "support/stream_builder.h"
#include "support/test_binary.h"

using pe::testing::run_tool;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(pe_symbolize_inline)

namespace {

constexpr std::uint64_t kLoadedAt = 0x555500000000;

/// A sample at each address of box::outer(); the program is loaded at kLoadedAt.
std::string all_of_outer(const std::string& program) {
  const auto image = pe::testing::image_of(program);
  const auto outer = pe::testing::symbol_of(image, "_ZN3box5outerEi");
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "prog");
  for (const auto& segment : image.segments())
    if (segment.executable)
      stream.map(0, 1, kLoadedAt + segment.svma, segment.file_bytes, segment.file_offset, program);
  for (std::uint64_t i = 0; i < outer.bytes; ++i)
    stream.sample({.time_ns = 1 + i, .chain = {kLoadedAt + outer.svma + i}});
  return stream.round().text();
}

struct Folded {
  std::string text;
  std::string err;
};

Folded fold(const std::vector<std::string>& symbolize, const std::vector<std::string>& fold) {
  const auto named =
      run_tool(pe::kPeSymbolize, symbolize, all_of_outer(pe::testing::test_binary("inlined_pie")));
  return {run_tool(pe::kStackfold, fold, named.out).out, named.err};
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + " ") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inlined_functions_are_frames_of_their_own) {
  const auto folded = fold({}, {});
  BOOST_TEST(
      has_line(folded.text, "prog;box::outer;box::Box::middle;(anonymous namespace)::innermost"),
      folded.text);
  BOOST_TEST(has_line(fold({}, {"--annotate"}).text,
                      "prog;box::outer;box::Box::middle_[i];(anonymous namespace)::innermost_[i]"));
  BOOST_TEST(folded.err == "");
}

BOOST_AUTO_TEST_CASE(without_them_only_functions_with_a_frame_are_left) {
  const auto text = fold({"--no-inline"}, {}).text;
  BOOST_TEST(text.starts_with("prog;box::outer "));
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(lines_are_told_if_asked_on_both_sides) {
  const std::string wanted =
      "prog;box::outer:inlined.cpp:25;box::Box::middle:inlined.cpp:19;(anonymous "
      "namespace)::innermost:inlined.cpp:8";
  BOOST_TEST(has_line(fold({"--lines"}, {"--lines"}).text, wanted));
  BOOST_TEST(fold({"--lines"}, {}).text == fold({}, {}).text);
  BOOST_TEST(fold({}, {"--lines"}).text == fold({}, {}).text);
  BOOST_TEST(has_line(fold({"--lines", "--no-inline"}, {"--lines"}).text,
                      "prog;box::outer:inlined.cpp:25"));
}

BOOST_AUTO_TEST_CASE(both_at_once_are_refused) {
  const auto r = run_tool(pe::kPeSymbolize, {"--inline", "--no-inline"});
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err == "pe-symbolize: --inline, --no-inline: cannot be combined (see --help)\n");
}

BOOST_AUTO_TEST_SUITE_END()
