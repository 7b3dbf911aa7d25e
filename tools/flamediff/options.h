// What the command line means, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "picture/page_options.h"

namespace pe::flamediff {

enum class Form { kPicture, kFolded, kText };

/// Which profile the widths of frames are of.
enum class WidthFrom {
  kBefore,
  kAfter,
  kBoth,  ///< the mean of both shares
};

struct Options : picture::PageOptions {
  /// Files: one a run.
  std::vector<std::string> before, after;
  std::string output_file;  ///< empty: standard output
  Form output = Form::kPicture;
  WidthFrom width_from = WidthFrom::kAfter;
  bool is_absolute = false;          ///< counts are compared as they are, or for each unit of work
  std::vector<double> work;          ///< units that each run did, before and then after; or empty
  bool is_only_significant = false;  ///< what is not beyond noise is dimmed, or left out
  bool is_perl = false;              ///< --compat: quirks of difffolded.pl included
  bool normalizes = false;           ///< --folded -n
  bool strips_hex = false;           ///< --folded -s
  bool cuts_build_details = true;
  std::vector<std::string> strip;       ///< regular expressions
  std::optional<double> fail_over;      ///< percent by which a share may grow
  std::optional<std::uint64_t> period;  ///< counts of a sample; 0: counts are not samples
  bool has_unit = false;                ///< --countname says that counts are something else
  std::uint64_t top = 20;               ///< rows of each table; 0: all
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::flamediff
