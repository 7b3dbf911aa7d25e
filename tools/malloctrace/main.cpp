// SPDX-License-Identifier: MIT
#include "malloctrace/malloctrace.h"

int main(int argc, char** argv) { return pe::run_main(pe::kMalloctrace, argc, argv); }
