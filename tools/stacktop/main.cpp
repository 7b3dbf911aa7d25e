// stacktop: prints the hot spots of folded stacks as a table.
// SPDX-License-Identifier: MIT
#include "base/cli/run.h"
#include "stacktop/stacktop.h"

int main(int argc, char** argv) { return pe::run_main(pe::kStacktop, argc, argv); }
