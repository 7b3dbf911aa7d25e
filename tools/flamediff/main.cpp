// flamediff: two profiles in, what changed out.
// SPDX-License-Identifier: MIT
#include "cli/run.h"
#include "flamediff/flamediff.h"

int main(int argc, char** argv) { return pe::cli::run_main(pe::kFlamediff, argc, argv); }
