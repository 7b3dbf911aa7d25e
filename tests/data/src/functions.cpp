// A shared library with every kind of symbol that compilers make.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace shapes {

template <typename T>
[[gnu::noinline]] T twice(T value) {
  return value + value;
}
template int twice<int>(int);

struct Circle {
  double radius;
  [[gnu::noinline]] double area() const;
};
double Circle::area() const { return radius * radius * 3.14; }

}  // namespace shapes

extern "C" {

// Five names for one address: of those with the fewest underscores, the shortest is shown.
[[gnu::noinline]] int named_often(int x) { return x * 7; }
[[gnu::alias("named_often")]] int __named(int x);
[[gnu::alias("named_often")]] int __GI_named_often(int x);
[[gnu::alias("named_often")]] int named_very_often(int x);
[[gnu::weak, gnu::alias("named_often")]] int named_often_but_weakly_so(int x);

// A weak symbol is shown like any other if it is the only one.
[[gnu::weak, gnu::noinline]] int weak_function(int x) { return x - 1; }

static int chosen_at_load(int x) { return x + 1; }
auto resolver_of_that_function() -> int (*)(int) { return chosen_at_load; }
[[gnu::ifunc("resolver_of_that_function")]] int resolved_function(int x);

// calls_others() calls puts and malloc through .plt.  It calls sqrt, whose address it takes,
// through .plt.got.
double calls_others(double x) {
  double (*volatile pointer)(double) = std::sqrt;
  std::puts("hello");
  std::free(std::malloc(static_cast<std::size_t>(x)));
  return pointer(x) + std::sqrt(x) + resolved_function(1) + weak_function(2);
}
}
