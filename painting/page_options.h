// The options that all flame graph tools share: sizes, texts and appearance of the page.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/cli/run.h"
#include "painting/layout.h"
#include "painting/svg/colors.h"
#include "painting/svg/page.h"

namespace pe::painting {

struct PageOptions {
  PageStyle page;  ///< without the geometry's levels, which are not known yet
  MinWidth min_width;
  /// Largest size of the embedded tree as base64 text, in bytes; 0: no tree, every frame is drawn.
  std::uint64_t embed_limit = 3 << 20;
};

/// The numbers that an option accepts, both ends included.
struct NumberRange {
  double low, high;
};

void add_page_options(boost::program_options::options_description& options);
/// Adds the options for users of flamegraph.pl.
void add_compatible_page_options(boost::program_options::options_description& options);

/// Sets what the counts are: "samples", "bytes", "us".
void set_count_name(PageStyle& page, std::string name);

/// Uses `title` if the user chose none.  Throws UsageError.
PageOptions read_page_options(const CommandLine& line, std::string_view title);

/// Returns `font`, and fonts to use if a machine does not have it, as a list of CSS.
std::string font_family_of(std::string_view font);

/// Replaces `value` if the option was given.  Throws UsageError if the number is out of `range`.
void read_number(const CommandLine& line, const char* option, NumberRange range, double& value);
/// Replaces `value` if the option was given.
void read_text(const CommandLine& line, const char* option, std::string& value);
/// Throws UsageError("--option: expected: 'text'").
[[noreturn]] void refuse(const char* option, std::string_view expected, const std::string& text);

}  // namespace pe::painting
