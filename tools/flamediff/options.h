// The command line of flamediff, parsed and validated.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "painting/page_options.h"

namespace pe::flamediff {

enum class Form { kPicture, kFolded, kText };
/// The form of the table of kText.
enum class TableForm { kText, kJson, kMarkdown };

/// Which profile gives the widths of frames.
enum class WidthFrom {
  kBefore,
  kAfter,
  kBoth,  ///< the mean of both shares
};

struct Options : painting::PageOptions {
  /// Files, one for each run.
  std::vector<std::string> before, after;
  Form output = Form::kPicture;
  TableForm table = TableForm::kText;
  WidthFrom width_from = WidthFrom::kAfter;
  bool is_absolute = false;          ///< compare counts, or counts per unit of work
  std::vector<double> work;          ///< --per: units of each run, those before first; or empty
  bool is_only_significant = false;  ///< dim changes that are not beyond noise
  bool shows_noise = false;          ///< --with-noise: tables have changes that may be noise, too
  bool is_perl = false;              ///< --compat: with the quirks of difffolded.pl
  bool normalizes = false;           ///< --folded --normalize
  bool strips_hex = false;           ///< --folded --strip-hex
  bool cuts_build_details = true;
  std::vector<std::string> strip;       ///< regular expressions
  std::optional<double> fail_over;      ///< a share may grow by this many percent
  std::optional<std::uint64_t> period;  ///< counts per sample; 0: counts are not samples
  bool names_unit = false;              ///< --countname: the files' own units are ignored
  bool has_unit = false;                ///< counts are not samples
  std::uint64_t top = 20;               ///< rows of each table; 0: all
};

void add_options(boost::program_options::options_description& options);
/// Adds the options for users of difffolded.pl and flamegraph.pl.
void add_compatible_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::flamediff
