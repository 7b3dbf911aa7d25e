// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

int main(int argc, char** argv) { return pe::run_main(pe::kOffcpu, argc, argv); }
