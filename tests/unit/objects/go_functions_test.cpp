// SPDX-License-Identifier: MIT
#include "objects/go_functions.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "objects/symbol_table.h"
#include "support/binary_symbols.h"
#include "support/go_table.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

BOOST_AUTO_TEST_SUITE(go_functions)

namespace {

/// Returns a stripped program that has this table of functions, in a section of that name.
pe::objects::Image program_with(const std::string& table, const std::string& section) {
  using pe::testing::output_of;
  const pe::testing::TempDir dir;
  const std::string path = dir / "stripped";
  output_of("objcopy --strip-all --remove-section .dynsym --add-section " + section + "='" +
            dir.file("table", table) + "' " + pe::testing::test_binary("labels.so") + " " + path);
  return pe::testing::image_of(path);
}

/// Returns its symbols.
pe::objects::SymbolTable symbols_with(const std::string& table,
                                      const std::string& section = ".gopclntab") {
  return pe::objects::SymbolTable(program_with(table, section));
}

constexpr std::uint64_t kText = 0x401000;

}  // namespace

// The second is the name in programs that can be loaded anywhere.
const std::string kSections[] = {".gopclntab", ".data.rel.ro.gopclntab"};

BOOST_DATA_TEST_CASE(a_stripped_program_has_the_names_that_its_runtime_prints, kSections, section) {
  const auto symbols = symbols_with(
      pe::testing::go_table({{0, "main.work", 0, {}}, {0x20, "main.(*T).Run", 0, {}}}, 0x60, kText),
      section);
  const auto name_at = [&](std::uint64_t svma) {
    const auto symbol = symbols.find(svma);
    return symbol ? std::string(symbol->name) : "";
  };
  BOOST_TEST(name_at(kText) == "main.work");
  BOOST_TEST(name_at(kText + 0x1f) == "main.work");
  BOOST_TEST(name_at(kText + 0x5f) == "main.(*T).Run");
  BOOST_TEST(name_at(kText + 0x60) == "");
}

BOOST_DATA_TEST_CASE(the_table_shows_that_go_built_a_program, kSections, section) {
  BOOST_TEST(pe::objects::is_go_program(program_with("table", section)));
  BOOST_TEST(!pe::objects::is_go_program(program_with("table", ".other")));
}

// The table of an attacker names one long name for all functions: copies of it would fill the
// memory.
BOOST_AUTO_TEST_CASE(names_take_no_more_than_the_table) {
  constexpr std::uint32_t kFunctions = 10'000;
  std::vector<pe::testing::GoFunction> functions;
  for (std::uint32_t i = 0; i < kFunctions; ++i)
    functions.push_back({16 * i, i == 0 ? std::string(4000, 'x') : "", 0, {}});
  std::string table = pe::testing::go_table(functions, 16 * kFunctions, kText);
  constexpr std::size_t kDescription = 40, kName = 4;  // bytes of one, and where its name is
  const std::size_t first = table.size() - kFunctions * (kDescription + 4);
  for (std::uint32_t i = 0; i < kFunctions; ++i)
    std::memset(table.data() + first + i * (kDescription + 4) + kName, 0, sizeof(std::uint32_t));
  const auto symbols = symbols_with(table);
  BOOST_TEST(symbols.is_damaged());
  BOOST_TEST(symbols.size() <= table.size() / 4000 + 1);
  BOOST_TEST(symbols.size() > 0U);
}

BOOST_AUTO_TEST_CASE(a_name_has_at_most_four_kilobytes) {
  const std::string table =
      pe::testing::go_table({{0, std::string(5000, 'x'), 0, {}}}, 0x20, kText);
  const pe::objects::GoFunctions functions(std::as_bytes(std::span(table)), kText);
  BOOST_TEST_REQUIRE(functions.size() == 1U);
  BOOST_TEST(functions.function(0).value().name == "");
}

BOOST_AUTO_TEST_SUITE_END()
