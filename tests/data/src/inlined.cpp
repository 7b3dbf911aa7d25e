// Functions inlined into each other, whose lines the tests know.
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

int main(int argc, char**) { return (box::outer(argc) + plain(argc)) & 1; }
