// SPDX-License-Identifier: MIT
#include "unwind/address_space.h"

#include <boost/test/unit_test.hpp>

#include "support/fake_code.h"

BOOST_AUTO_TEST_SUITE(address_space)

namespace {

using pe::testing::FakeCode;
using pe::testing::kFakeCode;
using namespace pe::unwind;

RuleKind kind_at(AddressSpace& space, std::uint64_t avma) { return space.rule(avma).kind(); }

/// Code without a table at [start, end).
CodeMapping bare(std::uint64_t start, std::uint64_t end) { return {start, end, 0, std::nullopt}; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_rule_is_found_where_the_image_is_mapped) {
  FakeCode code({"", ""});
  AddressSpace space(code.source());
  constexpr std::uint64_t kFar = 0x7f00'0000'0000;
  space.map({kFar, kFar + 0x1000, kFakeCode, 0});
  BOOST_CHECK(space.rule(kFar + 0x80) == Rule(RuleKind::kStackPointer, 1));
  BOOST_CHECK(kind_at(space, kFar + 0x200) == RuleKind::kNone);
  BOOST_CHECK(kind_at(space, kFar - 1) == RuleKind::kNotExecutable);
  BOOST_CHECK(kind_at(space, kFar + 0x1000) == RuleKind::kNotExecutable);
  const auto place = space.place(kFar + 0x80);
  BOOST_REQUIRE(place);
  BOOST_TEST(place->svma == kFakeCode + 0x80);
  BOOST_TEST(place->table == &code.table());
}

BOOST_AUTO_TEST_CASE(code_without_a_table_has_no_rules) {
  FakeCode code;
  AddressSpace space(code.source());
  space.map(bare(0x1000, 0x2000));
  space.map({0x3000, 0x4000, kFakeCode, 7});    // an image that cannot be opened
  space.map({0x5000, 0x6000, 0x4000'0000, 0});  // outside of the image
  for (const std::uint64_t avma : {0x1000, 0x3000, 0x5000}) {
    BOOST_CHECK(kind_at(space, avma) == RuleKind::kNone);
    BOOST_CHECK(!space.place(avma));
    BOOST_CHECK(space.find(avma) != nullptr);
  }
}

BOOST_AUTO_TEST_CASE(code_made_at_run_time_may_have_tables_of_its_own) {
  FakeCode code({"", ""});
  UnwindTable* table = nullptr;
  AddressSpace space(code.source(), nullptr, [&](std::uint64_t) { return table; });
  space.map(bare(kFakeCode, kFakeCode + 0x1000));
  space.map({0x1000, 0x2000, 0x4000'0000, 0});  // an image without rules at these addresses
  RuleCache cache;
  const std::uint64_t before = cache.generation(space);
  BOOST_CHECK(kind_at(space, kFakeCode + 0x80) == RuleKind::kNone);
  table = &code.table();
  space.withdraw_rules();
  BOOST_TEST(cache.generation(space) != before);
  BOOST_CHECK(space.rule(kFakeCode + 0x80) == Rule(RuleKind::kStackPointer, 1));
  BOOST_REQUIRE(space.place(kFakeCode + 0x80));
  BOOST_TEST(space.place(kFakeCode + 0x80)->svma == kFakeCode + 0x80);
  BOOST_CHECK(!space.place(0x1080));
}

BOOST_AUTO_TEST_CASE(a_runtime_may_know_the_rules_of_its_code) {
  FakeCode code({"", ""});
  const Rule known(RuleKind::kStackPointer, 6, 2);
  AddressSpace space(code.source(), nullptr, nullptr, [&](std::uint64_t avma) {
    return avma < 0x1800 ? std::optional(known) : std::nullopt;
  });
  space.map(bare(0x1000, 0x2000));
  space.map({0x400, 0x800, 0x4000'0000, 0});  // a file's code is not a runtime's
  BOOST_CHECK(space.rule(0x17ff) == known);
  BOOST_CHECK(kind_at(space, 0x1800) == RuleKind::kNone);
  BOOST_CHECK(kind_at(space, 0x500) == RuleKind::kNone);
}

BOOST_AUTO_TEST_CASE(tables_are_asked_for_when_they_are_needed) {
  FakeCode code({""});
  int asked = 0;
  AddressSpace space([&](std::uint32_t) {
    ++asked;
    return &code.table();
  });
  space.map(FakeCode::mapping());
  BOOST_TEST(asked == 0);
  space.rule(kFakeCode);
  space.rule(kFakeCode + 1);
  BOOST_TEST(asked == 1);
}

BOOST_AUTO_TEST_CASE(what_is_mapped_later_replaces_what_was_there) {
  FakeCode code({"", ""});
  AddressSpace space = code.space();
  space.map(bare(kFakeCode + 0x80, kFakeCode + 0x100));
  BOOST_CHECK(kind_at(space, kFakeCode + 0x7f) == RuleKind::kStackPointer);
  BOOST_CHECK(kind_at(space, kFakeCode + 0x80) == RuleKind::kNone);
  // The rest is still the image, at its own addresses.
  BOOST_CHECK(kind_at(space, kFakeCode + 0x100) == RuleKind::kStackPointer);
  BOOST_TEST(space.place(kFakeCode + 0x100)->svma == kFakeCode + 0x100);
}

BOOST_AUTO_TEST_CASE(what_is_unmapped_is_no_code) {
  FakeCode code({"", "", ""});
  AddressSpace space = code.space();
  space.unmap(kFakeCode + 0x100, kFakeCode + 0x200);
  BOOST_CHECK(space.find(kFakeCode + 0xff) != nullptr);
  BOOST_CHECK(space.find(kFakeCode + 0x100) == nullptr);
  BOOST_CHECK(space.find(kFakeCode + 0x1ff) == nullptr);
  BOOST_CHECK(kind_at(space, kFakeCode + 0x200) == RuleKind::kStackPointer);
  space.unmap(0, ~std::uint64_t{0});
  BOOST_CHECK(space.find(kFakeCode) == nullptr);
}

BOOST_AUTO_TEST_CASE(mappings_that_end_before_they_start_are_ignored) {
  FakeCode code;
  AddressSpace space(code.source());
  space.map(bare(0x2000, 0x2000));
  space.map(bare(0x3000, 0x2000));
  BOOST_CHECK(space.find(0x2000) == nullptr);
  BOOST_CHECK(space.find(0x2fff) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
