// A library of functions too small to notice, so that time is spent in the PLT: see stacks.cpp,
// plt. Both are visible outside, so the call of one by the other goes through the library's own
// PLT.
// SPDX-License-Identifier: MIT

extern "C" {

int tiny(int n) { return n + 1; }

void call_tiny_often(int times) {
  static volatile int sink;
  for (int i = 0; i < times; ++i)
    sink = tiny(sink);
}

}  // extern "C"
