// SPDX-License-Identifier: MIT
#include "names/module_symbols.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <boost/test/unit_test.hpp>

#include <ctime>
#include <filesystem>
#include <string>

#include "objects/mapped_image.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::names::ModuleSymbols;
using pe::names::NoName;
using pe::objects::Image;
using pe::testing::output_of;
using pe::testing::test_binary;

/// The address that nm prints for a name.  g++ 16 marks names in anonymous namespaces as local, by
/// an L.
std::uint64_t svma_of_name(const std::string& path, const std::string& name) {
  return std::stoull(output_of("nm '" + path + "' | sed 's/12_GLOBAL__N_1L/12_GLOBAL__N_1/' | " +
                               "awk '$3 == \"" + name + "\" {print $1}'"),
                     nullptr, 16);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(module_symbols)

BOOST_AUTO_TEST_CASE(names_the_function_at_a_file_offset) {
  const std::string path = test_binary("libfunctions.so");
  ModuleSymbols module(Image::open(path));
  const std::uint64_t svma = svma_of_name(path, "_ZNK6shapes6Circle4areaEv");
  const auto* text = module.image()->section(".text");
  const std::uint64_t file_offset = svma - text->svma + text->file_offset;
  BOOST_TEST(module.svma_of(file_offset).value() == svma);
  const auto found = module.find(file_offset + 2);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->name == "shapes::Circle::area");
  BOOST_TEST(found->start_svma == svma);
  BOOST_TEST(found->offset == 2U);
}

BOOST_AUTO_TEST_CASE(a_name_is_demangled_once) {
  ModuleSymbols module(Image::open(test_binary("libfunctions.so")));
  const std::uint64_t svma =
      svma_of_name(test_binary("libfunctions.so"), "_ZN6shapes5twiceIiEET_S1_");
  const auto first = module.find_svma(svma);
  BOOST_TEST(first->name == "shapes::twice<int>");
  BOOST_TEST(module.find_svma(svma)->name.data() == first->name.data());
}

BOOST_AUTO_TEST_CASE(an_address_outside_of_all_symbols_is_not_covered) {
  ModuleSymbols module(Image::open(test_binary("libfunctions.so")));
  BOOST_TEST(!module.find(~std::uint64_t{0}));
  BOOST_TEST(!module.find_svma(1));
  BOOST_CHECK(module.why_unnamed() == NoName::kNotCovered);
}

BOOST_AUTO_TEST_CASE(says_why_there_are_no_names) {
  const pe::testing::TempDir dir;
  BOOST_CHECK(ModuleSymbols(Image::open("/nonexistent")).why_unnamed() == NoName::kMissing);
  BOOST_CHECK(ModuleSymbols(Image::open("/")).why_unnamed() == NoName::kNotRegular);
  BOOST_CHECK(ModuleSymbols(Image::open(dir.file("x", "text"))).why_unnamed() == NoName::kNotElf);
  BOOST_CHECK(ModuleSymbols(Image::open(dir.file("y", "\177ELF\2\1\1........."))).why_unnamed() ==
              NoName::kDamaged);
  ModuleSymbols stripped(Image::open(test_binary("labels_stripped.so")));
  BOOST_CHECK(stripped.why_unnamed() == NoName::kNoSymbols);
  BOOST_TEST(!stripped.find(0x1000));
  ModuleSymbols missing(Image::open("/nonexistent"));
  BOOST_TEST(!missing.find(0));
  BOOST_TEST(missing.image() == nullptr);
}

BOOST_AUTO_TEST_CASE(names_stay_when_the_file_is_released) {
  ModuleSymbols module(Image::open(test_binary("libfunctions.so")));
  module.release_file();
  BOOST_TEST(module.image()->fd() == -1);
  const std::uint64_t svma = svma_of_name(test_binary("libfunctions.so"), "weak_function");
  BOOST_TEST(module.find_svma(svma)->name == "weak_function");
  BOOST_TEST(module.image()->build_id().size() == 20U);
}

BOOST_AUTO_TEST_CASE(static_functions_of_a_stripped_program_are_named_by_its_debug_file) {
  const auto address =
      svma_of_name(test_binary("debug_files/whole5"), "_ZN12_GLOBAL__N_114only_in_symtabEi");
  for (const char* name : {"stripped5", "without-id", "mini"}) {
    const std::string path = test_binary("debug_files/") + name;
    BOOST_TEST(!ModuleSymbols(Image::open(path)).find_svma(address));
    pe::objects::DebugFinder finder;
    ModuleSymbols module(pe::objects::Image::open(path), path, finder);
    const auto found = module.find_svma(address + 1);
    BOOST_REQUIRE_MESSAGE(found, path);
    BOOST_TEST(found->name == "(anonymous namespace)::only_in_symtab");
    BOOST_TEST(found->offset == 1U);
    BOOST_CHECK(module.why_unnamed() == NoName::kNotCovered);
  }
}

BOOST_AUTO_TEST_CASE(a_debug_file_of_another_build_is_told) {
  const pe::testing::TempDir dir;
  std::filesystem::copy(test_binary("debug_files/stripped5"), dir / "program");
  std::filesystem::copy(test_binary("debug_files/whole4"), dir / "stripped5.debug");
  pe::objects::DebugFinder finder;
  for (int i = 0; i < 2; ++i) {
    ModuleSymbols module(pe::objects::Image::open(dir / "program"), dir / "program", finder);
    BOOST_CHECK(module.why_unnamed() == NoName::kOtherDebugFile);
  }
}

BOOST_AUTO_TEST_CASE(the_c_library_calls_main_from_a_function_with_a_name) {  // needs libc6-dbg
  const std::string path = output_of("ldd '" + test_binary("debug_files/whole5") +
                                     "' | awk '$1 == \"libc.so.6\" {printf \"%s\", $3}'");
  pe::objects::DebugFinder finder;
  ModuleSymbols module(pe::objects::Image::open(path), path, finder);
  bool found = false;
  for (const auto& segment : module.image()->segments())
    for (std::uint64_t at = 0; segment.executable && at < segment.file_bytes; at += 16) {
      const auto symbol = module.find_svma(segment.svma + at);
      found = found || (symbol && symbol->name == "__libc_start_call_main");
    }
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(the_vdso_has_names) {
  if (::getauxval(AT_SYSINFO_EHDR) == 0)
    return;
  ModuleSymbols module(pe::objects::own_vdso());
  bool found = false;
  for (std::uint64_t offset = 0; offset < module.image()->size_bytes(); offset += 16) {
    const auto symbol = module.find(offset);
    found = found || (symbol && symbol->name == "__vdso_clock_gettime");
  }
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_SUITE_END()
