// A library that waits.cpp loads while offcpu records it.
// SPDX-License-Identifier: MIT
extern "C" __attribute__((visibility("default"))) void call_from_library(void (*call)());

volatile int calls_of_library = 0;

void call_from_library(void (*call)()) {
  call();
  calls_of_library = calls_of_library + 1;
}
