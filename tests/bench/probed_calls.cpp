// Passes one place again and again, with the same callers: for probes whose stacks are walked.
//
// Usage: probed_calls DEPTH HITS
// SPDX-License-Identifier: MIT
#include <cstdlib>

namespace {

volatile int sink;

}  // namespace

extern "C" {

__attribute__((noinline)) void passed_place(int number) { sink = number; }

__attribute__((noinline)) int call_deeper(int depth, int hits) {
  if (depth > 0) {
    const int result = call_deeper(depth - 1, hits);
    sink = result;  // so that the call is not the last of the function
    return result;
  }
  for (int i = 0; i < hits; ++i)
    passed_place(i);
  return hits;
}
}

int main(int argc, char** argv) {
  return argc == 3 && call_deeper(std::atoi(argv[1]), std::atoi(argv[2])) >= 0 ? 0 : 2;
}
