// SPDX-License-Identifier: MIT
#include "base/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>
#include <vector>

namespace {

using pe::Fd;
using pe::has_free_descriptors;

Fd open_one() { return Fd(::open("/", O_PATH | O_CLOEXEC)); }

/// Limits the number of descriptors, as ulimit -n does in a shell.
class Limit {
 public:
  explicit Limit(rlim_t descriptors) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{descriptors, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~Limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  Limit(Limit&&) = delete;
  Limit& operator=(Limit&&) = delete;

 private:
  rlimit before_{};
};

/// Opens files until only `left` descriptors are free.
std::vector<Fd> take_all_but(std::size_t left) {
  std::vector<Fd> taken;
  for (Fd one = open_one(); one; one = open_one())
    taken.push_back(std::move(one));
  // The free descriptors are not the last ones; used ones are between them.
  for (std::size_t i = 0; i < left; ++i)
    taken[2 * i].close();
  return taken;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(descriptors)

BOOST_AUTO_TEST_CASE(free_ones_are_counted) {
  const Limit limit(64);
  const auto taken = take_all_but(7);
  BOOST_TEST(has_free_descriptors(0));
  BOOST_TEST(has_free_descriptors(1));
  BOOST_TEST(has_free_descriptors(7));
  BOOST_TEST(!has_free_descriptors(8));
}

BOOST_AUTO_TEST_CASE(none_is_free) {
  const Limit limit(64);
  const auto taken = take_all_but(0);
  BOOST_TEST(has_free_descriptors(0));
  BOOST_TEST(!has_free_descriptors(1));
}

BOOST_AUTO_TEST_CASE(another_thread_opens_files_meanwhile) {
  const Limit limit(64);
  const auto taken = take_all_but(7);
  std::atomic<bool> is_over = false;
  std::thread asks([&is_over] {
    while (!is_over)
      has_free_descriptors(16);
  });
  int refused = 0;
  for (int i = 0; i < 20'000; ++i)
    refused += open_one() ? 0 : 1;
  is_over = true;
  asks.join();
  BOOST_TEST(refused == 0);
}

BOOST_AUTO_TEST_SUITE_END()
