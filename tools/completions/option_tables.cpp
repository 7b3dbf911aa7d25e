// Prints the options of every tool as JSON.  scripts/dev/make-completions makes the completions
// from it.  The build of stackpipe runs this program, and does not install it.
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <string>

#include "base/cli/option_table.h"
#include "flamediff/flamediff.h"
#include "flamesvg/flamesvg.h"
#include "malloctrace/malloctrace.h"
#include "offcpu/offcpu.h"
#include "pe-record/pe_record.h"
#include "pe-symbolize/pe_symbolize.h"
#include "stackfold/stackfold.h"
#include "stacktop/stacktop.h"

int main() {
  std::string tables;
  for (const pe::Tool* tool : {&pe::kFlamediff, &pe::kFlamesvg, &pe::kMalloctrace, &pe::kOffcpu,
                               &pe::kPeRecord, &pe::kPeSymbolize, &pe::kStackfold, &pe::kStacktop})
    tables += (tables.empty() ? "[" : ",\n") + pe::option_table(*tool);
  tables += "]\n";
  const bool is_written = std::fputs(tables.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return is_written ? 0 : 1;
}
