// Debug information in other files than the program gives the same frames as debug information in
// the program.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <sys/stat.h>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <sstream>

#include "base/text.h"
#include "names/dwarf/inlines.h"
#include "support/binary_symbols.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::names::Inlines;
using pe::objects::DebugFinder;
using pe::objects::Image;
using pe::testing::image_of;
using pe::testing::made;
using pe::testing::output_of;
using pe::testing::TempDir;
using pe::testing::test_binary;
namespace fs = std::filesystem;

pe::objects::DebugSearch search(std::vector<std::string> roots) {
  return {.roots = std::move(roots), .sysroot = {}, .fetch = {}};
}

struct Frames {
  std::size_t addresses = 0, with_names = 0, with_inlined = 0;
  std::string text;  ///< the frames of all addresses
};

/// The output of addr2line for an address.
struct Witnessed {
  std::string names;  ///< innermost first, joined by blanks
  std::string place;  ///< "file:line" of the innermost
};

std::vector<Witnessed> by_addr2line(const std::string& path,
                                    const std::vector<std::uint64_t>& addresses) {
  std::string input;
  for (const auto address : addresses)
    input += fmt::format("{:#x}\n", address);
  const TempDir dir;
  const std::string file = dir.file("addresses", input);
  std::istringstream lines(output_of("addr2line -a -i -f -e '" + path + "' <'" + file + "'"));
  std::vector<Witnessed> all;
  all.reserve(addresses.size());
  for (std::string line, place; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      all.emplace_back();
      continue;
    }
    std::getline(lines, place);
    if (all.back().names.empty())
      all.back().place = place;
    all.back().names += line + ' ';
  }
  return all;
}

/// An address in the middle of some `count` functions.  addr2line would name the padding between
/// functions after the symbol before it.
std::vector<std::uint64_t> addresses_in_functions(const Image& image, std::size_t count) {
  const pe::objects::SymbolTable table(image);
  std::vector<std::uint64_t> addresses;
  const std::size_t step = std::max<std::size_t>(table.size() / count, 1);
  for (std::size_t i = 0; i < table.size(); i += step) {
    const auto symbol = table.at(static_cast<std::uint32_t>(i));
    if (symbol.bytes > 1)
      addresses.push_back(symbol.svma + symbol.bytes / 2);
  }
  return addresses;
}

/// The frames of every address of .text, from the program at `path`.
Frames frames_of(const std::string& path, DebugFinder& finder) {
  const Image image = image_of(path);
  Inlines inlines(image, path, finder);
  Frames all;
  const auto* code = image.section(".text");
  for (std::uint64_t svma = code->svma; svma < code->svma + code->bytes; ++svma) {
    const auto frames = inlines.at(svma);
    ++all.addresses;
    all.with_names += frames.empty() || frames.back().name.empty() ? 0 : 1;
    all.with_inlined += frames.size() > 1 ? 1 : 0;
    for (const auto& frame : frames)
      all.text += fmt::format("{:x} {} {} {}:{}\n", svma - code->svma, frame.linkage_name,
                              frame.name, pe::file_name(frame.file), frame.line);
  }
  return all;
}

void check_same(const std::string& path, const std::string& whole, const std::string& root = "") {
  DebugFinder finder(search({root}));
  const Frames expected = frames_of(made(whole), finder);
  BOOST_TEST(expected.with_inlined > 500U);
  const Frames frames = frames_of(path, finder);
  BOOST_TEST(frames.with_inlined == expected.with_inlined, path);
  BOOST_TEST((frames.text == expected.text), path);
  BOOST_TEST(finder.refused().empty(), path);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(inlines_elsewhere)

BOOST_AUTO_TEST_CASE(a_separate_debug_file_serves_as_well) {
  check_same(made("stripped5"), "whole5");
  check_same(made("unlinked"), "whole4", made("root"));
}

BOOST_AUTO_TEST_CASE(compressed_sections_serve_as_well) {
  check_same(made("zlib5"), "whole5");
  check_same(made("zstd5"), "whole5");
}

BOOST_AUTO_TEST_CASE(parts_that_programs_share_are_put_together) {
  check_same(made("alt_a"), "whole4");
}

BOOST_AUTO_TEST_CASE(split_units_are_read_from_their_files) {
  check_same(made("split4"), "whole4");
  check_same(made("split5"), "whole5");
}

BOOST_AUTO_TEST_CASE(split_units_are_read_from_a_package) {
  check_same(made("packed/packed4"), "whole4");
  check_same(made("packed/packed5"), "packed/clang5");
}

BOOST_AUTO_TEST_CASE(split_units_that_are_missing_or_of_another_build_name_nothing) {
  const TempDir dir;
  output_of("cd '" + (dir / "") + "' && mkdir dwo && printf 'int main() { return 0; }' >a.cpp && " +
            "g++ -g -gsplit-dwarf -c a.cpp -o dwo/a.o && g++ dwo/a.o -o program");
  DebugFinder finder(search({}));
  const Frames whole = frames_of(dir / "program", finder);
  BOOST_TEST(whole.with_names > 0U);
  fs::copy(made("dwo/split5-1.dwo"), dir / "dwo/a.dwo", fs::copy_options::overwrite_existing);
  BOOST_TEST(frames_of(dir / "program", finder).with_names == 0U);
  BOOST_TEST(finder.refused().size() == 1U);
  fs::remove(dir / "dwo/a.dwo");
  BOOST_REQUIRE(::mkfifo((dir / "dwo/a.dwo").c_str(), 0600) == 0);
  BOOST_TEST(frames_of(dir / "program", finder).with_names == 0U);
}

BOOST_AUTO_TEST_CASE(the_c_library_has_the_frames_that_addr2line_finds) {  // needs libc6-dbg
  const std::string path =
      output_of("ldd '" + made("whole5") + "' | awk '$1 == \"libc.so.6\" {printf \"%s\", $3}'");
  const Image image = image_of(path);
  DebugFinder finder;
  Inlines inlines(image, path, finder);
  BOOST_TEST_REQUIRE(!inlines.is_empty());
  const auto addresses = addresses_in_functions(image, 1000);
  BOOST_TEST(addresses.size() > 500U);
  const auto expected = by_addr2line(path, addresses);
  BOOST_TEST_REQUIRE(expected.size() == addresses.size());
  std::size_t nameless = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::string names;
    for (const auto& frame : inlines.at(addresses[i]))
      names += std::string(frame.linkage_name.empty() ? frame.name : frame.linkage_name) + ' ';
    // If the debug information has no function for an address, addr2line prints a symbol of
    // .symtab. Such addresses are in assembly, or in code that has only a line.
    if (names.empty())
      BOOST_TEST((expected[i].place.starts_with("??") ||
                  expected[i].place.find(".S:") != std::string::npos),
                 expected[i].place);
    else if (names == " ")
      ++nameless;
    else
      BOOST_TEST(names == expected[i].names);
  }
  BOOST_TEST(nameless < addresses.size() / 100);
}

BOOST_AUTO_TEST_SUITE_END()
