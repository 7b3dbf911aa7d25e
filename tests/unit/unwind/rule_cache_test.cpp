// SPDX-License-Identifier: MIT
#include "unwind/address_space.h"

#include <boost/test/unit_test.hpp>

#include "support/fake_code.h"

BOOST_AUTO_TEST_SUITE(rule_cache)

namespace {

using pe::testing::code;
using pe::testing::FakeCode;
using pe::testing::kFakeCode;
using namespace pe::unwind;

const std::string kPushRbp = code({DW_CFA_def_cfa_offset, 32, DW_CFA_offset | 6, 3});

/// The rule in the cache for the instruction at `avma`; nullopt if there is none.
std::optional<Rule> cached(RuleCache& cache, AddressSpace& space, std::uint64_t avma) {
  const auto found = cache.look_up(avma + 1, RuleCache::salt_of(cache.generation(space)));
  return found.is_hit() ? std::optional(found.rule()) : std::nullopt;
}

Rule fill(RuleCache& cache, AddressSpace& space, std::uint64_t avma) {
  return cache.fill(avma + 1, RuleCache::salt_of(cache.generation(space)), space);
}

}  // namespace

BOOST_AUTO_TEST_CASE(keeps_whole_rules) {
  FakeCode code({kPushRbp, "", std::string(1, DW_CFA_undefined) + '\x10'});
  AddressSpace space = code.space();
  RuleCache cache;
  BOOST_CHECK(!cached(cache, space, kFakeCode));
  for (const std::uint64_t offset : {0x0, 0x100, 0x200, 0x300}) {
    const Rule rule = fill(cache, space, kFakeCode + offset);
    BOOST_CHECK(rule == space.rule(kFakeCode + offset));
    BOOST_CHECK(cached(cache, space, kFakeCode + offset) == rule);
  }
  BOOST_CHECK(cached(cache, space, kFakeCode) == Rule(RuleKind::kStackPointer, 4, 3));
  BOOST_TEST(cache.statistics().misses == 4U);
}

BOOST_AUTO_TEST_CASE(an_address_is_not_taken_for_another_in_the_same_place) {
  FakeCode code({kPushRbp});
  AddressSpace space = code.space();
  RuleCache cache;
  fill(cache, space, kFakeCode);
  for (std::uint64_t other = 1; other < (std::uint64_t{1} << 34); other <<= 1)
    BOOST_CHECK(!cached(cache, space, kFakeCode + other * RuleCache::kPlaces));
}

BOOST_AUTO_TEST_CASE(places_without_code_are_not_kept) {
  FakeCode code;
  AddressSpace space = code.space();
  RuleCache cache;
  BOOST_CHECK(fill(cache, space, 0x500).kind() == RuleKind::kNotExecutable);
  BOOST_CHECK(!cached(cache, space, 0x500));
  // Thus the cache finds code that is mapped there later.
  space.map({0x500, 0x600, 0, std::nullopt});
  BOOST_CHECK(fill(cache, space, 0x500).kind() == RuleKind::kNone);
}

BOOST_AUTO_TEST_CASE(rules_are_forgotten_when_something_is_unmapped) {
  FakeCode code({kPushRbp});
  AddressSpace space = code.space();
  RuleCache cache;
  fill(cache, space, kFakeCode);
  const auto generation = cache.generation(space);
  space.map({0x500, 0x600, 0, std::nullopt});  // removes nothing
  BOOST_TEST(cache.generation(space) == generation);
  BOOST_CHECK(cached(cache, space, kFakeCode));
  space.unmap(kFakeCode + 0x80, kFakeCode + 0x90);
  BOOST_TEST(cache.generation(space) != generation);
  BOOST_CHECK(!cached(cache, space, kFakeCode));
}

BOOST_AUTO_TEST_CASE(spaces_do_not_see_each_others_rules) {
  FakeCode code({kPushRbp});
  AddressSpace space = code.space();
  AddressSpace other(code.source());
  RuleCache cache;
  fill(cache, space, kFakeCode);
  BOOST_CHECK(!cached(cache, other, kFakeCode));
  BOOST_CHECK(cached(cache, space, kFakeCode));
}

BOOST_AUTO_TEST_CASE(a_generation_is_never_given_out_twice) {
  FakeCode code({kPushRbp});
  AddressSpace space = code.space();
  AddressSpace other(code.source());
  RuleCache cache;
  const auto first = cache.generation(other);
  fill(cache, other, kFakeCode);
  std::uint64_t before = 0;
  for (int i = 0; i < 70'000; ++i) {  // more than the number of salts
    space.unmap(kFakeCode, kFakeCode + 1);
    space.map(FakeCode::mapping());
    const auto generation = cache.generation(space);
    BOOST_REQUIRE(generation > before && generation != first);
    BOOST_REQUIRE(RuleCache::salt_of(generation) >> 48 != 0xffffU);
    before = generation;
  }
  // Meanwhile another space may have had its salt.
  BOOST_TEST(cache.generation(other) > before);
  BOOST_CHECK(!cached(cache, other, kFakeCode));
}

BOOST_AUTO_TEST_SUITE_END()
