// The options that every picture of stacks has: measures, texts, looks of the page.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/cli/run.h"
#include "picture/layout.h"
#include "picture/svg/colors.h"
#include "picture/svg/page.h"

namespace pe::picture {

struct PageOptions {
  PageStyle page;  ///< the geometry's levels are not known yet
  MinWidth min_width;
  /// Base64 text that the embedded tree may take; 0: no tree, every frame is drawn.
  std::uint64_t embed_limit = 3 << 20;
};

/// What is the same for a tool that reads counts from its command line.
struct NumberRange {
  double low, high;
};

void add_page_options(boost::program_options::options_description& options);

/// `title` and `background` where none is chosen.  Throws UsageError.
PageOptions read_page_options(const CommandLine& line, std::string_view title,
                              const Background& background);

/// Replaces `value` if the option was given.  Throws UsageError outside of `range`.
void read_number(const CommandLine& line, const char* option, NumberRange range, double& value);
/// Replaces `value` if the option was given.
void read_text(const CommandLine& line, const char* option, std::string& value);
/// Throws UsageError("--option: expected: 'text'").
[[noreturn]] void refuse(const char* option, std::string_view expected, const std::string& text);

}  // namespace pe::picture
