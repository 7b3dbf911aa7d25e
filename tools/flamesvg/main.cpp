// flamesvg: folded stacks in, flame graph out.
// SPDX-License-Identifier: MIT
#include "cli/run.h"
#include "flamesvg/flamesvg.h"

int main(int argc, char** argv) { return pe::cli::run_main(pe::kFlamesvg, argc, argv); }
