// SPDX-License-Identifier: MIT
#include "objects/debug_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "objects/compressed.h"
#include "objects/symbol_table.h"
#include "support/binary_symbols.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::objects::DebugFinder;
using pe::objects::DebugRefusal;
using pe::objects::Image;
using pe::testing::image_of;
using pe::testing::made;
using pe::testing::output_of;
using pe::testing::TempDir;
using pe::testing::test_binary;
namespace fs = std::filesystem;

bool has_static_function(const Image& image) {
  const pe::objects::SymbolTable table(image);
  for (std::uint32_t i = 0; i < table.size(); ++i)
    if (table.at(i).name.find("only_in_symtab") != std::string_view::npos)
      return true;
  return false;
}

/// A finder without folders to search.
DebugFinder without_roots() { return DebugFinder({.roots = {}, .sysroot = {}, .fetch = {}}); }

/// The path of the separate debug file; empty if none is found.
std::string found(DebugFinder& finder, const std::string& path) {
  const auto file = finder.separate(image_of(path), path);
  return file ? file->path : "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(debug_file)

BOOST_AUTO_TEST_CASE(a_build_id_leads_below_each_root) {
  DebugFinder finder({.roots = {"/nonexistent", made("root")}, .sysroot = {}, .fetch = {}});
  const std::string path = made("unlinked");
  const auto file = finder.separate(image_of(path), path);
  BOOST_TEST_REQUIRE(file.has_value());
  BOOST_TEST(file->path.starts_with(made("root/.build-id/")));
  BOOST_TEST(has_static_function(file->image));
  BOOST_TEST(finder.refused().empty());
}

BOOST_AUTO_TEST_CASE(below_a_sysroot_the_same_is_found) {
  const std::string root = made("root");
  const auto slash = root.rfind('/');
  DebugFinder finder(
      {.roots = {root.substr(slash)}, .sysroot = root.substr(0, slash), .fetch = {}});
  BOOST_TEST(found(finder, made("unlinked")).starts_with(root));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_user_has_no_names_for_a_program_of_a_third) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("only root can give a file away");
    return;
  }
  const TempDir dir;
  fs::copy(made("stripped5"), dir / "program");
  fs::copy(made("stripped5.debug"), dir / "stripped5.debug");
  auto finder = without_roots();
  const std::string debug = dir / "stripped5.debug", program = dir / "program";
  BOOST_REQUIRE(::chown(debug.c_str(), 65534, 65534) == 0);
  BOOST_TEST(found(finder, program) == "");
  BOOST_CHECK(finder.refused().at(debug) == DebugRefusal::kOtherOwner);
  BOOST_REQUIRE(::chown(program.c_str(), 65534, 65534) == 0);
  BOOST_TEST(found(finder, program) == debug);
}

BOOST_AUTO_TEST_CASE(a_link_leads_beside_the_file_or_into_its_debug_folder) {
  const TempDir dir;
  auto finder = without_roots();
  BOOST_TEST(found(finder, made("stripped5")) == made("stripped5.debug"));
  fs::copy(made("stripped5"), dir / "program");
  BOOST_TEST(found(finder, dir / "program") == "");
  fs::create_directory(dir / ".debug");
  fs::copy(made("stripped5.debug"), dir / ".debug/stripped5.debug");
  BOOST_TEST(found(finder, dir / "program") == dir / ".debug/stripped5.debug");
}

BOOST_AUTO_TEST_CASE(a_link_leads_below_a_root_by_the_folder_of_the_file) {
  const TempDir dir;
  fs::create_directory(dir / "bin");
  fs::create_directory(dir / "elsewhere");
  fs::copy(made("stripped5"), dir / "bin/program");
  fs::create_symlink(dir / "bin/program", dir / "elsewhere/link");
  const std::string below = dir / "root" + (dir / "bin");
  fs::create_directories(below);
  fs::copy(made("stripped5.debug"), below + "/stripped5.debug");
  DebugFinder finder({.roots = {dir / "root"}, .sysroot = {}, .fetch = {}});
  BOOST_TEST(found(finder, dir / "bin/program") == below + "/stripped5.debug");
  BOOST_TEST(found(finder, dir / "elsewhere/link") == below + "/stripped5.debug");
}

BOOST_AUTO_TEST_CASE(without_build_id_the_crc_decides) {
  const TempDir dir;
  auto finder = without_roots();
  BOOST_TEST(found(finder, made("without-id")) == made("crc.debug"));
  fs::copy(made("without-id"), dir / "program");
  auto bytes = pe::testing::bytes_of_file(made("crc.debug"));
  bytes.back() ^= std::byte{1};
  const std::string changed =
      dir.file("crc.debug", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  BOOST_TEST(found(finder, dir / "program") == "");
  BOOST_REQUIRE(finder.refused().contains(changed));
  BOOST_CHECK(finder.refused().at(changed) == DebugRefusal::kOtherCrc);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_build_is_refused) {
  const TempDir dir;
  fs::copy(made("stripped5"), dir / "program");
  fs::copy(made("whole4"), dir / "stripped5.debug");
  auto finder = without_roots();
  BOOST_TEST(found(finder, dir / "program") == "");
  BOOST_CHECK(finder.refused().at(dir / "stripped5.debug") == DebugRefusal::kOtherBuildId);
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_refused_and_does_not_block) {
  const TempDir dir;
  fs::copy(made("stripped5"), dir / "program");
  BOOST_REQUIRE(::mkfifo((dir / "stripped5.debug").c_str(), 0600) == 0);
  fs::create_directories(dir / ".debug/stripped5.debug");
  auto finder = without_roots();
  BOOST_TEST(found(finder, dir / "program") == "");
  BOOST_TEST(finder.refused().size() == 2U);
  for (const auto& [path, why] : finder.refused())
    BOOST_CHECK(why == DebugRefusal::kUnusable);
}

BOOST_AUTO_TEST_CASE(a_stripped_file_that_a_link_leads_back_to_is_no_debug_file) {
  const TempDir dir;
  fs::copy(made("stripped5"), dir / "stripped5.debug");
  auto finder = without_roots();
  BOOST_TEST(found(finder, dir / "stripped5.debug") == "");
}

BOOST_AUTO_TEST_CASE(a_damaged_link_is_told) {
  const TempDir dir;
  const std::string link = dir.file("link", "../../etc/passwd");
  const std::string path = dir / "program";
  output_of("objcopy --add-section .gnu_debuglink='" + link +
            "' --add-section .gnu_debugaltlink='" + link + "' '" + made("unlinked") + "' '" + path +
            "'");
  auto finder = without_roots();
  BOOST_TEST(found(finder, path) == "");
  BOOST_CHECK(finder.refused().at(path) == DebugRefusal::kBadLink);
  BOOST_TEST(!finder.alternate(image_of(path), path));
}

BOOST_AUTO_TEST_CASE(what_is_nowhere_is_fetched_and_compared) {
  const std::string path = made("unlinked");
  const Image image = image_of(path);
  for (const auto& [answer, expected] :
       {std::pair{"whole4", made("whole4")}, {"whole5", std::string()}}) {
    DebugFinder finder({.roots = {}, .sysroot = {}, .fetch = [&, answer = answer](pe::Bytes id) {
                          BOOST_TEST(std::ranges::equal(id, image.build_id()));
                          return std::optional(made(answer));
                        }});
    BOOST_TEST(found(finder, path) == expected);
  }
}

BOOST_AUTO_TEST_CASE(dwarf_that_is_shared_is_found_by_its_path_and_compared) {
  auto finder = without_roots();
  const std::string path = made("alt_a");
  const auto file = finder.alternate(image_of(path), path);
  BOOST_TEST_REQUIRE(file.has_value());
  BOOST_TEST(file->path == made("alt.dwz"));
  const TempDir dir;
  fs::copy(path, dir / "program");
  fs::copy(made("whole5"), dir / "alt.dwz");
  BOOST_TEST(!finder.alternate(image_of(dir / "program"), dir / "program"));
  BOOST_CHECK(finder.refused().at(dir / "alt.dwz") == DebugRefusal::kOtherBuildId);
}

BOOST_AUTO_TEST_CASE(mini_debug_information_has_static_functions) {
  auto finder = without_roots();
  const std::string path = made("mini");
  BOOST_TEST(!has_static_function(image_of(path)));
  const auto mini = finder.mini(image_of(path), path);
  BOOST_TEST_REQUIRE(mini.has_value());
  BOOST_TEST(has_static_function(*mini));
  BOOST_TEST(!finder.mini(image_of(made("whole5")), made("whole5")));
}

BOOST_AUTO_TEST_CASE(mini_debug_information_that_is_too_large_or_damaged_is_refused) {
  const TempDir dir;
  const std::string cut = dir.file("cut.xz",
                                   "\xfd"
                                   "7zXZ");
  const std::string bomb = dir / "bomb.xz";
  output_of("head -c 200M /dev/zero | xz -0 >'" + bomb + "'");
  for (const std::string& content : {cut, bomb}) {
    const std::string path = dir / "program";
    output_of("objcopy --add-section .gnu_debugdata='" + content + "' '" + made("unlinked") +
              "' '" + path + "'");
    auto finder = without_roots();
    BOOST_TEST(!finder.mini(image_of(path), path));
    BOOST_CHECK(finder.refused().at(path + "(.gnu_debugdata)") == DebugRefusal::kTooLarge);
  }
}

BOOST_AUTO_TEST_CASE(sections_compressed_by_zlib_and_zstd_are_read) {
  const Image whole = image_of(made("whole5"));
  const auto expected = whole.section_bytes(".debug_info");
  BOOST_TEST_REQUIRE(expected.has_value());
  for (const char* name : {"zlib5", "zstd5"}) {
    const Image image = image_of(made(name));
    const auto* section = image.section(".debug_info");
    BOOST_TEST(pe::objects::is_compressed(*section));
    const auto bytes = pe::objects::read_uncompressed(image, *section, Image::kMaxSectionBytes);
    BOOST_TEST_REQUIRE(bytes.has_value());
    BOOST_TEST((*bytes == expected->bytes));
    BOOST_TEST(!pe::objects::read_uncompressed(image, *section, bytes->size() - 1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
