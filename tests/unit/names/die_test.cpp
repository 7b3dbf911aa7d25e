// SPDX-License-Identifier: MIT
#include "names/dwarf/die.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "names/dwarf/debug_image.h"

using namespace pe::names;

namespace {

// The kinds of entries, by their numbers in the table below.  Only kStating has an attribute.
constexpr char kUnit = 1, kBlock = 2, kLeaf = 3, kStating = 4, kUnknown = 9;
const std::string kEnd(1, '\0');

constexpr std::size_t kHeaderBytes = 11;

/// Debug information with one unit; `entries` are those within it.
class Information {
 public:
  explicit Information(const std::string& entries) : handle_(make(entries)) {
    BOOST_REQUIRE(handle_.get() != nullptr);
    BOOST_REQUIRE(dwarf_offdie(handle_.get(), kHeaderBytes, &unit_) != nullptr);
  }

  Dwarf_Die& unit() { return unit_; }

  /// The kind of an entry, which is all that it consists of.
  static char kind_of(const Dwarf_Die& die) { return *static_cast<const char*>(die.addr); }

 private:
  static DebugImage make(const std::string& entries) {
    const std::string abbreviations{kUnit,
                                    DW_TAG_compile_unit,
                                    1,
                                    0,
                                    0,
                                    kBlock,
                                    DW_TAG_lexical_block,
                                    1,
                                    0,
                                    0,
                                    kLeaf,
                                    DW_TAG_label,
                                    0,
                                    0,
                                    0,
                                    kStating,
                                    DW_TAG_lexical_block,
                                    1,
                                    DW_AT_sibling,
                                    DW_FORM_ref4,
                                    0,
                                    0,
                                    0};
    const std::string unit = kUnit + entries;
    constexpr std::size_t kLength = 4;
    std::string info(kHeaderBytes, '\0');
    const auto bytes = static_cast<std::uint32_t>(kHeaderBytes - kLength + unit.size());
    std::memcpy(info.data(), &bytes, sizeof bytes);
    info[kLength] = 4;           // the version of DWARF
    info[kHeaderBytes - 1] = 8;  // the size of addresses
    info += unit;
    DebugImageBuilder builder(EM_X86_64, info.size());
    builder.add(".debug_abbrev", std::as_bytes(std::span(abbreviations)));
    builder.add(".debug_info", std::as_bytes(std::span(info)));
    return builder.finish();
  }

  DwarfHandle handle_;
  Dwarf_Die unit_{};
};

/// An entry that states that its sibling is `bytes` after the start of the unit's entries.
std::string stating(std::size_t bytes) {
  const auto offset = static_cast<std::uint32_t>(kHeaderBytes + 1 + bytes);
  std::string entry(1 + sizeof offset, kStating);
  std::memcpy(entry.data() + 1, &offset, sizeof offset);
  return entry;
}

/// The walk as text: "b" a block that is entered, "B" one that is not, "l" a leaf, and after the
/// entries of a block ">" and the next entry, or "." without one.
std::string walk(Information& information, Effort& effort, std::size_t entered = ~std::size_t{0}) {
  std::string text;
  const auto name = [](const Dwarf_Die& die) {
    return Information::kind_of(die) == kLeaf ? 'l' : 'b';
  };
  walk_entries(
      information.unit(), effort,
      [&](Dwarf_Die& die) {
        const bool enters = name(die) == 'b' && entered > 0;
        entered -= enters ? 1 : 0;
        text += name(die) == 'l' ? 'l' : enters ? 'b' : 'B';
        return enters;
      },
      [&](const std::optional<Dwarf_Die>& next) {
        text += next ? std::string{'>', name(*next)} : ".";
      });
  return text;
}

std::string walk(const std::string& entries, std::size_t entered = ~std::size_t{0}) {
  Information information(entries);
  Effort effort(1'000'000);
  return walk(information, effort, entered);
}

const std::string kB(1, kBlock), kL(1, kLeaf), kX(1, kUnknown);

}  // namespace

BOOST_AUTO_TEST_SUITE(die)

BOOST_AUTO_TEST_CASE(entries_come_in_the_order_of_the_file) {
  const std::string entries = kL + kB + kB + kL + kEnd + kEnd + kL + kB + kEnd + kB + kEnd + kEnd;
  BOOST_TEST(walk(entries) == "lbbl.>llb>bb.");
  BOOST_TEST(walk(entries, 1) == "lbB>llBB");
  BOOST_TEST(walk(entries, 0) == "lBlBB");
}

// To find what follows an entry, libdw reads all that is within it, at each level again.
BOOST_AUTO_TEST_CASE(nested_entries_are_read_once) {
  constexpr std::size_t kLevels = 256, kLeaves = 100;
  const std::string leaves(kLeaves, kLeaf);
  std::string begin, end;
  for (std::size_t level = 0; level < kLevels; ++level) {
    begin += kB + leaves;
    end += kEnd + kL;
  }
  for (const std::size_t entered : {kLevels, std::size_t{1}, std::size_t{0}})
    for (const std::string& entries :
         {begin + end + kEnd, begin + std::string(kLevels + 1, '\0')}) {
      Information information(entries);
      Effort effort(2 * entries.size());
      const std::string text = walk(information, effort, entered);
      BOOST_TEST(!effort.is_spent());
      BOOST_TEST(effort.spend(entries.size() / 2));  // each byte has cost once
      Effort less(entries.size() - 2 * kLevels - 2);
      walk(information, less, entered);
      BOOST_TEST(less.is_spent());  // and all have
      const bool has_last = entries[entries.size() - 2] == kLeaf;
      const auto visited = static_cast<std::size_t>(std::count(text.begin(), text.end(), 'l'));
      BOOST_TEST(visited >= entered * kLeaves + (has_last ? 1 : 0));
    }
}

BOOST_AUTO_TEST_CASE(a_stated_sibling_is_used_where_entries_are_invalid) {
  const std::string entries = stating(7) + kX + kEnd + kL + kEnd;
  BOOST_TEST(walk(entries, 0) == "Bl");
  BOOST_TEST(walk(entries) == "bb.>ll");
  BOOST_TEST(walk(kB + kX + kEnd + kL + kEnd) == "bb..");
}

BOOST_AUTO_TEST_CASE(a_sibling_that_is_stated_before_its_entry_ends_the_list) {
  BOOST_TEST(walk(kL + stating(0) + kEnd + kL + kEnd, 0) == "lB");
}

BOOST_AUTO_TEST_CASE(lists_may_lack_their_end) {
  BOOST_TEST(walk(kB + kB + kL) == "bbl..");
  BOOST_TEST(walk(kB + kB + kL + kEnd) == "bbl..");
  BOOST_TEST(walk(kB + kB + kL, 0) == "B");
}

BOOST_AUTO_TEST_SUITE_END()
