// Random allocations and frees beside a model that copies everything at each new peak.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/account.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "shared_room.h"

BOOST_AUTO_TEST_SUITE(account)

namespace {

using namespace pe::malloctrace;
using pe::heap::Totals;
using pe::testing::SharedRoom;
using pe::testing::Zeroed;

struct SiteModel {
  std::int64_t allocated = 0, count = 0, live = 0, live_count = 0, temporary = 0, at_peak = 0;
};

class Model {
 public:
  explicit Model(std::uint32_t sites) : sites(sites + 1) {}

  void allocate(std::uint32_t site, std::int64_t bytes) {
    sites[site].allocated += bytes;
    ++sites[site].count;
    sites[site].live += bytes;
    ++sites[site].live_count;
    live += bytes;
    if (live > peak) {
      peak = live;
      for (SiteModel& one : sites)
        one.at_peak = one.live;
    }
  }
  void free(std::uint32_t site, std::int64_t bytes, bool is_temporary) {
    sites[site].live -= bytes;
    --sites[site].live_count;
    sites[site].temporary += is_temporary ? 1 : 0;
    live -= bytes;
  }

  std::vector<SiteModel> sites;
  std::int64_t live = 0, peak = 0;
};

class Book {
 public:
  explicit Book(std::uint32_t sites, std::uint32_t threads = 1) : sites_(sites) {
    ledger_->start(shared());
    shared().header().sites = sites;
    shared().header().threads = threads;
    accounts_.resize(threads);
    for (std::uint32_t i = 0; i < threads; ++i)
      accounts_[i].open(shared(), i, *ledger_);
  }

  void begin_threads() { ledger_->begin_threads(); }

  [[nodiscard]] SharedMemory shared() const { return room_.memory(); }
  Account& operator[](std::uint32_t thread) { return accounts_[thread]; }

  /// What a reader makes of it.
  [[nodiscard]] SiteModel read(std::uint32_t site) const {
    SiteModel sum;
    add(sum, totals_of(shared(), site));
    for (std::uint32_t i = 0; i < shared().header().threads; ++i)
      for (const pe::heap::ThreadSum& one : shared().threads()[i].sums)
        if (one.site == site)
          add(sum, one);
    return sum;
  }
  [[nodiscard]] std::int64_t live() const {
    std::int64_t live = shared().header().live_bytes;
    for (std::uint32_t i = 0; i < shared().header().threads; ++i)
      live += shared().threads()[i].live_bytes;
    return live;
  }

  void check(const Model& model) const {
    BOOST_REQUIRE(live() == model.live);
    const bool is_peak_now = live() > shared().header().peak_bytes;
    BOOST_REQUIRE((is_peak_now ? live() : shared().header().peak_bytes) == model.peak);
    for (std::uint32_t site = 1; site <= sites_; ++site) {
      const SiteModel got = read(site);
      const SiteModel& wanted = model.sites[site];
      BOOST_REQUIRE(got.allocated == wanted.allocated);
      BOOST_REQUIRE(got.count == wanted.count);
      BOOST_REQUIRE(got.live == wanted.live);
      BOOST_REQUIRE(got.live_count == wanted.live_count);
      BOOST_REQUIRE(got.temporary == wanted.temporary);
      BOOST_REQUIRE((is_peak_now ? got.live : got.at_peak) == wanted.at_peak);
    }
  }

 private:
  template <typename T>
  void add(SiteModel& sum, const T& one) const {
    sum.allocated += static_cast<std::int64_t>(one.allocated_bytes);
    sum.count += static_cast<std::int64_t>(one.allocated_count);
    sum.live += one.live_bytes;
    sum.live_count += one.live_count;
    sum.temporary += static_cast<std::int64_t>(one.temporary_count);
    const bool has_changed = one.version == shared().header().peak_version;
    sum.at_peak += has_changed ? one.peak_bytes : one.live_bytes;
  }

  std::uint32_t sites_;
  SharedRoom room_;
  Zeroed<Ledger> ledger_;
  std::vector<Account> accounts_;
};

struct Held {
  std::uint32_t site;
  std::uint64_t bytes;
};

/// `most` bytes at once; more sites than a thread has sums for.
void play(std::uint32_t seed, std::uint64_t most) {
  constexpr std::uint32_t kSites = 1500;
  Book book(kSites);
  Model model(kSites);
  std::mt19937 random(seed);
  std::vector<Held> held;
  for (int i = 0; i < 30000; ++i) {
    // Grows, then shrinks, again and again.
    const bool grows = random() % 100 < (i / 1000 % 2 == 0 ? 70U : 30U);
    if (grows || held.empty()) {
      const auto site = random() % 8 == 0 ? random() % kSites + 1 : random() % 20 + 1;
      const Held block{static_cast<std::uint32_t>(site), random() % most};
      held.push_back(block);
      book[0].allocate(block.site, {block.bytes, 1});
      model.allocate(block.site, static_cast<std::int64_t>(block.bytes));
    } else {
      std::swap(held[random() % held.size()], held.back());
      const bool is_temporary = random() % 2 == 0;
      book[0].free(held.back().site, {held.back().bytes, 1}, is_temporary);
      model.free(held.back().site, static_cast<std::int64_t>(held.back().bytes), is_temporary);
      held.pop_back();
    }
    if (i % 1000 == 7)
      book.check(model);
  }
  book.check(model);
  book[0].close();
  book.check(model);
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_thread_is_exact_and_its_peak_too) {
  for (const std::uint32_t seed : {1U, 2U, 3U})
    play(seed, 1000);
}

BOOST_AUTO_TEST_CASE(totals_that_outgrow_32_bits_become_wide) { play(4, std::uint64_t{1} << 31); }

BOOST_AUTO_TEST_CASE(what_one_thread_frees_is_taken_from_what_another_has_allocated) {
  Book book(3, 2);
  book.shared().header().has_threads = 1;
  book[0].allocate(1, {100, 1});
  book[1].free(1, {100, 1}, false);
  book[1].close();
  BOOST_TEST(book.read(1).live == 0);
  BOOST_TEST(book.read(1).allocated == 100);
  book[0].close();
  BOOST_TEST(book.read(1).live == 0);
  BOOST_TEST(book.live() == 0);
}

BOOST_AUTO_TEST_CASE(threads_lose_nothing_and_the_peak_is_within_the_slack) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kRounds = 20000;
  constexpr std::int64_t kBlock = 100;
  Book book(700, kThreads);
  book.shared().header().has_threads = 1;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&book, i] {
      for (std::uint32_t j = 0; j < kRounds; ++j)
        book[i].allocate(j % 700 + 1, {kBlock, 1});
      for (std::uint32_t j = 0; j < kRounds; ++j)
        book[i].free(j % 700 + 1, {kBlock, 1}, false);
      book[i].close();
    });
  for (std::thread& thread : threads)
    thread.join();
  std::int64_t allocated = 0;
  for (std::uint32_t site = 1; site <= 700; ++site) {
    BOOST_REQUIRE(book.read(site).live == 0);
    BOOST_REQUIRE(book.read(site).live_count == 0);
    allocated += book.read(site).allocated;
  }
  BOOST_TEST(allocated == kBlock * kRounds * kThreads);
  BOOST_TEST(book.live() == 0);
  BOOST_TEST(book.shared().header().peak_bytes > 0);
  BOOST_TEST(book.shared().header().peak_bytes <= kBlock * kRounds * kThreads);
}

BOOST_AUTO_TEST_CASE(the_peak_of_others_has_what_the_first_thread_holds) {
  constexpr std::int64_t kMuch = 1'000'000;
  Book book(2, 2);
  book[0].allocate(1, {kMuch, 1});
  book.begin_threads();
  book[1].allocate(2, {kMuch, 1});
  book[1].free(2, {kMuch, 1}, false);
  BOOST_TEST(book.shared().header().peak_bytes == 2 * kMuch);
  BOOST_TEST(book.read(1).at_peak == kMuch);
  BOOST_TEST(book.read(2).at_peak == kMuch);
  BOOST_TEST(book.live() == kMuch);
  // What it frees first is told, and known from then on.
  book[0].free(1, {kMuch, 1}, false);
  book[1].allocate(2, {kMuch + 1, 1});
  book[1].free(2, {kMuch + 1, 1}, false);
  BOOST_TEST(book.shared().header().peak_bytes == 2 * kMuch);
  BOOST_TEST(book.live() == 0);
}

BOOST_AUTO_TEST_CASE(a_site_knows_when_it_first_and_last_allocated) {
  Book book(1);
  pe::heap::Header& header = book.shared().header();
  header.tick = 5;
  book[0].allocate(1, {1, 1});
  book[0].close();
  header.tick = 7;
  book[0].allocate(1, {1, 1});
  header.tick = 9;
  book[0].free(1, {1, 1}, false);
  book[0].close();
  const Totals totals = totals_of(book.shared(), 1);
  BOOST_TEST(totals.first_tick == 5U);
  BOOST_TEST(totals.last_tick == 7U);
}

BOOST_AUTO_TEST_CASE(a_peak_has_the_time_when_it_was_reached) {
  Book book(1, 2);
  pe::heap::Header& header = book.shared().header();
  header.tick = 20;
  book[0].allocate(1, {100, 1});
  BOOST_TEST(header.last_tick == 20U);
  header.tick = 80;
  book[0].free(1, {100, 1}, false);
  BOOST_TEST(header.peak_tick == 20U);
  book[1].allocate(1, {500, 1});
  BOOST_TEST(header.last_tick == 80U);
}

BOOST_AUTO_TEST_SUITE_END()
