// SPDX-License-Identifier: MIT
#include "stackfold/stackfold.h"

int main(int argc, char** argv) { return pe::run_main(pe::kStackfold, argc, argv); }
