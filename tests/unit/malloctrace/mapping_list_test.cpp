// Random mappings and unmappings beside a model that knows each page.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_writer.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <set>

#include "shared_room.h"

BOOST_AUTO_TEST_SUITE(mapping_list)

namespace {

using namespace pe::malloctrace;
using pe::testing::Zeroed;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kPages = 200;

class ModelOfMappings {
 public:
  explicit ModelOfMappings(MappingList& list) : list_(list) {}

  void map(std::uint64_t page, std::uint64_t bytes) {
    unmap(page, bytes);
    const std::uint32_t site = ++sites_;
    BOOST_REQUIRE(list_.add(page * kPageBytes, {site, bytes}));
    for (std::uint64_t i = 0; i * kPageBytes < bytes; ++i)
      pages_[page + i] = {site, std::min(kPageBytes, bytes - i * kPageBytes)};
  }

  void unmap(std::uint64_t page, std::uint64_t bytes) {
    std::map<std::uint32_t, std::uint64_t> wanted, got;
    std::set<std::uint32_t> wanted_last, got_last;
    for (std::uint64_t i = page; (i - page) * kPageBytes < bytes; ++i)
      if (const auto found = pages_.find(i); found != pages_.end()) {
        wanted[found->second.site] += found->second.bytes;
        pages_.erase(found);
      }
    for (const auto& [site, count] : wanted)
      if (!is_left(site))
        wanted_last.insert(site);
    list_.cut(page * kPageBytes, bytes, [&](const MappingList::Cut& cut) {
      got[cut.block.site] += cut.to - cut.from;
      if (cut.is_last)
        BOOST_REQUIRE(got_last.insert(cut.block.site).second);
    });
    BOOST_REQUIRE((got == wanted));
    BOOST_REQUIRE((got_last == wanted_last));
  }

 private:
  struct Page {
    std::uint32_t site;
    std::uint64_t bytes;
  };
  [[nodiscard]] bool is_left(std::uint32_t site) const {
    return std::any_of(pages_.begin(), pages_.end(),
                       [site](const auto& page) { return page.second.site == site; });
  }

  MappingList& list_;
  std::map<std::uint64_t, Page> pages_;
  std::uint32_t sites_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_goes_is_what_was_there_and_each_mapping_ends_once) {
  const Zeroed<MappingList> list;
  ModelOfMappings model(*list);
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t page = 16 + random() % kPages;
    if (random() % 2 == 0)
      model.map(page, 1 + random() % (30 * kPageBytes));
    else
      model.unmap(page, 1 + random() % (10 * kPageBytes));
  }
  model.unmap(0, 2 * kPages * kPageBytes);
}

BOOST_AUTO_TEST_SUITE_END()
