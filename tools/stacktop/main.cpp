// stacktop: folded stacks in, table of hot spots out.
// SPDX-License-Identifier: MIT
#include "cli/run.h"
#include "stacktop/stacktop.h"

int main(int argc, char** argv) { return pe::cli::run_main(pe::kStacktop, argc, argv); }
