// Functions inlined into each other.  The tests know their lines: do not move any.
// SPDX-License-Identifier: MIT
namespace {

inline __attribute__((always_inline)) int innermost(int x) {
  volatile int v = x;
  for (int i = 0; i < 100; ++i)
    v = v * 3 + i;  // line 8
  return v;
}

}  // namespace

namespace box {

struct Box {
  int n;
  __attribute__((always_inline)) int middle(int x) const {
    return innermost(x) + n;  // line 19
  }
};

__attribute__((noinline)) int outer(int x) {
  const Box b{x};
  return b.middle(x) + 1;  // line 25
}

}  // namespace box

extern "C" __attribute__((noinline)) int plain(int x) {
  volatile int y = x;  // line 31
  return y + 1;
}

namespace box::inner {
namespace {

struct Local {
  struct Deeper {
    __attribute__((always_inline)) static int in_class(int x) {
      volatile int z = x;  // line 41
      return z;
    }
  };
};

__attribute__((noinline)) int in_lambda(int x) {
  const auto lambda = [](int y) __attribute__((always_inline)) {
    volatile int z = y;  // line 49
    return z;
  };
  return lambda(x) + Local::Deeper::in_class(x);  // line 52
}

}  // namespace
}  // namespace box::inner

int main(int argc, char**) {
  return (box::outer(argc) + plain(argc) + box::inner::in_lambda(argc)) & 1;
}
