// SPDX-License-Identifier: MIT
#include "pe-symbolize/pe_symbolize.h"

int main(int argc, char** argv) { return pe::run_main(pe::kPeSymbolize, argc, argv); }
