// Each tool's program: the build names its Tool.
// SPDX-License-Identifier: MIT
#include "base/cli/run.h"

namespace pe {
extern const Tool PE_TOOL;
}

int main(int argc, char** argv) { return pe::run_main(pe::PE_TOOL, argc, argv); }
