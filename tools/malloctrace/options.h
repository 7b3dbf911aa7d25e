// malloctrace's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/cli/run.h"
#include "base/parse_number.h"
#include "recording/session.h"

namespace pe::malloctrace {

struct Options : recording::SessionRequest {
  std::uint64_t sample_bytes = 0;  ///< 0: every allocation
  std::uint32_t max_depth = 0;     ///< frames; 0: all
  bool with_mmap = false;
  bool follow = true;                        ///< processes that the command starts
  std::optional<std::uint64_t> snapshot_ns;  ///< one each time so much has passed
  bool report = false;                       ///< text instead of the stream
  std::size_t top = 10;                      ///< sites in each table of the report
  bool lines = false;                        ///< source lines in the report
  std::optional<std::uint64_t> leak_age_ns;  ///< leaks are shown that grew within this time
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::malloctrace
