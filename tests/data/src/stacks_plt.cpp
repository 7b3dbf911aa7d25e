// A library of very small functions, so that a program spends time in the PLT: see stacks.cpp, plt.
// Both functions are exported, so one calls the other through the library's own PLT.
// SPDX-License-Identifier: MIT

extern "C" {

int tiny(int n) { return n + 1; }

void call_tiny_often(int times) {
  static volatile int sink;
  for (int i = 0; i < times; ++i)
    sink = tiny(sink);
}

}  // extern "C"
