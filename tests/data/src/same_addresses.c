// Computes for some milliseconds, 20 calls deep.  Built with different numbers of BYTES, it has
// frames of different sizes at the same addresses.
// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static double fall(int depth, const double* above) {
  volatile double frame[BYTES / sizeof(double)];
  frame[0] = above[0] + depth;
  if (depth > 0)
    return fall(depth - 1, (const double*)frame) + frame[0];
  for (int i = 0; i < 10000; ++i)
    frame[0] += 1.0 / (i + frame[0]);
  return frame[0];
}

int main(int argc, char** argv) {
  const double end = clock() + CLOCKS_PER_SEC / 1000.0 * (argc > 1 ? atoi(argv[1]) : 100);
  volatile double sum = 0;
  while (clock() < end)
    sum += fall(20, &end);
  return 0;
}
