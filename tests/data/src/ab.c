/* Two builds of a program: the second has one function that is 20 % slower (-DSLOWER).
   Usage: ab SECONDS   (CPU time of the first build)
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#ifdef SLOWER
#define HASH_ROUNDS 12000
#else
#define HASH_ROUNDS 10000
#endif
#define NOINLINE __attribute__((noinline))

static unsigned state = 1;

/* Each function runs its own number of rounds, so its share is that of its rounds. */
#define BURN(name, rounds)                  \
  static NOINLINE void name(void) {         \
    unsigned x = state;                     \
    for (unsigned i = 0; i < (rounds); ++i) \
      x = x * 1664525U + 1013904223U;       \
    state = x;                              \
  }
BURN(parse, 6000)
BURN(hash, HASH_ROUNDS)
BURN(compare, 4000)
BURN(format, 5000)
BURN(write_out, 3000)

static NOINLINE void look_up(void) {
  hash();
  compare();
  state ^= 1;
}

static NOINLINE void print(void) {
  format();
  write_out();
  state ^= 2;
}

int main(int argc, char** argv) {
  /* A pass has 28,000 rounds of about 1.3 ns each. */
  long passes = (long)((argc > 1 ? atof(argv[1]) : 1) * 28000);
  for (long i = 0; i < passes; ++i) {
    parse();
    look_up();
    print();
  }
  printf("%u\n", state);
  return 0;
}
