// Runs a fiber of Boost.Context that uses MS ms of CPU time.
//
//     boost_fiber MS
// SPDX-License-Identifier: MIT
#include <boost/context/fiber.hpp>
#include <cstdlib>
#include <ctime>

namespace {

[[gnu::noinline]] void spin_in_fiber(double ms) {
  const auto used_ms = [] { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (const double end = used_ms() + ms; used_ms() < end;) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < 1'000'000; ++i)
      sum = sum * 31 + i;
  }
  asm volatile("");
}

}  // namespace

int main(int argc, char** argv) {
  namespace context = boost::context;
  const double ms = argc == 2 ? std::atof(argv[1]) : 0;
  context::fiber fiber([ms](context::fiber&& caller) {
    spin_in_fiber(ms);
    return std::move(caller);
  });
  fiber = std::move(fiber).resume();
}
