// SPDX-License-Identifier: MIT
#include "objects/symbol_table.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "support/binary_symbols.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::objects::Image;
using pe::objects::SymbolTable;
using pe::testing::image_of;
using pe::testing::output_of;
using pe::testing::test_binary;

SymbolTable table_of(std::string_view name) { return SymbolTable(image_of(test_binary(name))); }

/// The symbol at an offset of the section that labels.S fills; "-" if there is none.
class Labels {
 public:
  explicit Labels(const char* name)
      : image_(image_of(test_binary(name))), table_(image_), svma_(image_.section(".text")->svma) {}

  std::string at(std::uint64_t offset) const {
    const auto symbol = table_.find(svma_ + offset);
    return symbol ? fmt::format("{}+{}", symbol->name, svma_ + offset - symbol->svma) : "-";
  }

 private:
  Image image_;
  SymbolTable table_;
  std::uint64_t svma_;
};

/// Reads lines with an address and a name.
std::map<std::uint64_t, std::set<std::string>> names_by_address(const std::string& text) {
  std::map<std::uint64_t, std::set<std::string>> names;
  std::istringstream lines(text);
  std::string address;
  std::string name;
  while (lines >> address >> name)
    names[std::stoull(address, nullptr, 16)].insert(name);
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(symbol_table)

BOOST_AUTO_TEST_CASE(a_symbol_with_a_size_covers_only_that) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(0) == "sized+0");
  BOOST_TEST(labels.at(7) == "sized+7");
  BOOST_TEST(labels.at(8) == "-");
  BOOST_TEST(labels.at(15) == "-");
}

BOOST_AUTO_TEST_CASE(a_symbol_without_a_size_reaches_to_the_next) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(16) == "no_size_function+0");
  BOOST_TEST(labels.at(31) == "no_size_function+15");
  BOOST_TEST(labels.at(32) == "no_size_global+0");
  BOOST_TEST(labels.at(47) == "no_size_global+15");
}

BOOST_AUTO_TEST_CASE(the_last_symbol_without_a_size_reaches_to_the_end_of_its_section) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(176) == "last_label+0");
  BOOST_TEST(labels.at(191) == "last_label+15");
  BOOST_TEST(labels.at(192) == "-");
}

BOOST_AUTO_TEST_CASE(of_nested_symbols_the_innermost_counts) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(63) == "nested_outer+15");
  BOOST_TEST(labels.at(64) == "nested_inner+0");
  BOOST_TEST(labels.at(72) == "nested_innermost+0");
  BOOST_TEST(labels.at(79) == "nested_innermost+7");
  BOOST_TEST(labels.at(80) == "nested_inner+16");
  BOOST_TEST(labels.at(96) == "nested_outer+48");
}

BOOST_AUTO_TEST_CASE(a_label_ends_with_the_function_around_it) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(103) == "nested_outer+55");
  BOOST_TEST(labels.at(104) == "label_inside+0");
  BOOST_TEST(labels.at(111) == "label_inside+7");
  BOOST_TEST(labels.at(112) == "-");
}

BOOST_AUTO_TEST_CASE(of_overlapping_symbols_the_nearest_counts) {
  const Labels labels("labels.so");
  BOOST_TEST(labels.at(143) == "overlap_first+15");
  BOOST_TEST(labels.at(144) == "overlap_second+0");
  BOOST_TEST(labels.at(167) == "overlap_second+23");
  BOOST_TEST(labels.at(168) == "-");
}

BOOST_AUTO_TEST_CASE(bitness_makes_no_difference) {
  const Labels labels("labels.so");
  const Labels labels_32("labels_32.so");
  for (std::uint64_t offset = 0; offset < 200; ++offset)
    BOOST_TEST(labels.at(offset) == labels_32.at(offset));
}

BOOST_AUTO_TEST_CASE(data_and_absolute_numbers_are_no_code) {
  const SymbolTable table = table_of("labels.so");
  for (std::uint32_t i = 0; i < table.size(); ++i)
    BOOST_TEST((table.at(i).name != "data_label" && table.at(i).name != "absolute_number"));
}

BOOST_AUTO_TEST_CASE(the_best_of_several_names_is_kept) {
  const SymbolTable table = table_of("libfunctions.so");
  std::set<std::string_view> names;
  for (std::uint32_t i = 0; i < table.size(); ++i)
    names.insert(table.at(i).name);
  BOOST_TEST(names.count("named_often") == 1U);
  BOOST_TEST(names.count("named_very_often") == 0U);
  BOOST_TEST(names.count("__named") == 0U);
  BOOST_TEST(names.count("named_often_but_weakly_so") == 0U);
  BOOST_TEST(names.count("weak_function") == 1U);
}

BOOST_AUTO_TEST_CASE(an_ifunc_names_its_resolver) {
  const SymbolTable table = table_of("functions_stripped.so");
  bool found = false;
  for (std::uint32_t i = 0; i < table.size(); ++i)
    found = found || table.at(i).name == "resolved_function";
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(every_address_that_nm_names_in_code_is_found_under_one_of_its_names) {
  for (const std::string& path :
       {test_binary("libfunctions.so"), test_binary("labels.so"), std::string("/proc/self/exe")}) {
    const SymbolTable table(image_of(path));
    const auto expected = names_by_address(output_of(
        fmt::format("nm $(readlink -f {}) | awk '$2 ~ /^[tTWi]$/ && $3 != \"data_start\" && "
                    "$3 !~ /^__sancov_/ {{print $1, $3}}'",
                    path == "/proc/self/exe" ? fmt::format("/proc/{}/exe", ::getpid()) : path)));
    BOOST_TEST(expected.size() > 5U);
    for (const auto& [svma, names] : expected) {
      const auto symbol = table.find(svma);
      BOOST_TEST_CONTEXT(fmt::format("{} {:x} {}", path, svma, *names.begin()))
      BOOST_TEST((symbol && symbol->svma == svma && names.contains(std::string(symbol->name))));
    }
  }
}

BOOST_AUTO_TEST_CASE(plt_stubs_are_named_as_objdump_does) {
  for (const std::string& path :
       {test_binary("libfunctions.so"), test_binary("libfunctions_ibt.so"),
        std::string("/bin/bash"), std::string("/lib/x86_64-linux-gnu/libc.so.6")}) {
    const SymbolTable table(image_of(path));
    const auto expected = names_by_address(
        output_of("objdump -d -j .plt -j .plt.sec -j .plt.got " + path +
                  " 2>/dev/null | sed -n 's/^\\([0-9a-f]*\\) <\\(.*@plt\\)>:$/\\1 \\2/p'; true"));
    std::size_t stubs = 0;
    for (std::uint32_t i = 0; i < table.size(); ++i)
      stubs += table.at(i).name.ends_with("@plt") ? 1 : 0;
    BOOST_TEST(stubs > 0U);
    BOOST_TEST(stubs == expected.size());
    for (const auto& [svma, names] : expected) {
      const auto symbol = table.find(svma);
      BOOST_TEST_CONTEXT(fmt::format("{} {:x} {}", path, svma, *names.begin()))
      BOOST_TEST((symbol && symbol->svma == svma && names.contains(std::string(symbol->name))));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stripped_library_still_has_what_it_exports) {
  const SymbolTable full = table_of("libfunctions.so");
  const SymbolTable stripped = table_of("functions_stripped.so");
  BOOST_TEST(stripped.size() > 5U);
  BOOST_TEST(stripped.size() < full.size());
  BOOST_TEST(!stripped.is_damaged());
}

BOOST_AUTO_TEST_CASE(a_separate_debug_file_gives_the_rest) {
  const SymbolTable full = table_of("libfunctions.so");
  const SymbolTable both(image_of(test_binary("functions_stripped.so")),
                         image_of(test_binary("functions_debug.so")));
  BOOST_REQUIRE(both.size() == full.size());
  for (std::uint32_t i = 0; i < full.size(); ++i)
    BOOST_TEST(both.at(i).name == full.at(i).name);
}

BOOST_AUTO_TEST_CASE(a_table_of_data_has_all_variables_and_no_function) {
  const std::string path = test_binary("inlined");
  const auto expected = names_by_address(
      output_of("readelf -sW $(readlink -f " + path +
                ") | awk '$4 == \"OBJECT\" && $7 ~ /^[0-9]+$/ && $3 > 0 { print $2, $8 }'"));
  BOOST_REQUIRE(!expected.empty());
  const SymbolTable table(image_of(path), pe::objects::SymbolKind::kData);
  for (const auto& [address, names] : expected) {
    const auto symbol = table.find(address);
    BOOST_REQUIRE(symbol.has_value());
    BOOST_TEST(names.contains(std::string(symbol->name)));
    BOOST_TEST(symbol->svma == address);
  }
  const auto functions = SymbolTable(image_of(path));
  for (std::uint32_t i = 0; i < functions.size(); ++i)
    BOOST_TEST(!table.find(functions.at(i).svma));
}

BOOST_AUTO_TEST_CASE(an_image_without_symbols_has_none) {
  const SymbolTable table = table_of("labels_stripped.so");
  BOOST_TEST(table.empty());
  BOOST_TEST(!table.is_damaged());
  BOOST_TEST(!table.find(0x1000));
  BOOST_TEST(!SymbolTable().find(0));
}

BOOST_AUTO_TEST_CASE(memory_stays_below_twice_the_tables_of_the_file) {
  const Image image = image_of("/proc/self/exe");
  const SymbolTable table(image);
  std::uint64_t file_bytes = 0;
  for (const char* name : {".symtab", ".strtab", ".dynsym", ".dynstr"})
    file_bytes += image.section(name)->bytes;
  BOOST_TEST(table.memory_bytes() < 2 * file_bytes);
}

BOOST_AUTO_TEST_CASE(a_moved_table_still_answers) {
  SymbolTable table = table_of("libfunctions.so");
  const auto before = table.at(0);
  const SymbolTable moved = std::move(table);
  BOOST_TEST(moved.at(0).name.data() == before.name.data());
  BOOST_TEST(moved.find(before.svma)->name == before.name);
}

BOOST_AUTO_TEST_CASE(a_stripped_program_has_a_start_of_its_own_size) {
  const pe::testing::TempDir folder;
  for (const char* name : {"inlined", "inlined_pie"}) {
    const std::string stripped = folder / name;
    output_of("objcopy --strip-all " + test_binary(name) + " " + stripped);
    const auto start = pe::testing::symbol_of(image_of(test_binary(name)), "_start");
    const SymbolTable table(image_of(stripped));
    const auto found = table.find(start.svma);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->name == "_start");
    BOOST_TEST(found->svma == start.svma);
    BOOST_TEST(found->bytes == start.bytes);
    BOOST_TEST(found->has_size);
  }
}

BOOST_AUTO_TEST_CASE(a_library_has_no_start) {
  const SymbolTable table = table_of("functions_stripped.so");
  for (std::uint32_t i = 0; i < table.size(); ++i)
    BOOST_TEST(table.at(i).name != "_start");
}

BOOST_AUTO_TEST_SUITE_END()
