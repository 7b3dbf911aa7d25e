// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

int main(int argc, char** argv) { return pe::cli::run_main(pe::kOffcpu, argc, argv); }
