// flamesvg: draws folded stacks as a flame graph.
// SPDX-License-Identifier: MIT
#include "base/cli/run.h"
#include "flamesvg/flamesvg.h"

int main(int argc, char** argv) { return pe::run_main(pe::kFlamesvg, argc, argv); }
