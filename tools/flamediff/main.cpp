// flamediff: shows the differences of two profiles.
// SPDX-License-Identifier: MIT
#include "base/cli/run.h"
#include "flamediff/flamediff.h"

int main(int argc, char** argv) { return pe::run_main(pe::kFlamediff, argc, argv); }
