// Prints the options of every tool as JSON.  scripts/dev/make-completions makes the completions
// from it.  The build of stackpipe runs this program, and does not install it.
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "completions/option_table.h"
#include "flamediff/flamediff.h"
#include "flamesvg/flamesvg.h"
#include "malloctrace/malloctrace.h"
#include "offcpu/offcpu.h"
#include "pe-record/pe_record.h"
#include "pe-symbolize/pe_symbolize.h"
#include "stackfold/stackfold.h"
#include "stacktop/stacktop.h"

int main() try {
  pe::FdOutput out(STDOUT_FILENO, "stdout");
  pe::JsonWriter json(out);
  json.start_array();
  for (const pe::Tool* tool : {&pe::kFlamediff, &pe::kFlamesvg, &pe::kMalloctrace, &pe::kOffcpu,
                               &pe::kPeRecord, &pe::kPeSymbolize, &pe::kStackfold, &pe::kStacktop})
    pe::completions::write_option_table(*tool, json);
  json.end_array();
  out.flush();
  return 0;
} catch (const pe::Error& e) {
  std::fprintf(stderr, "option_tables: %s\n", e.what());
  return 1;
}
