// SPDX-License-Identifier: MIT
#include "pe-record/pe_record.h"

int main(int argc, char** argv) { return pe::run_main(pe::kPeRecord, argc, argv); }
