// The last lines of a recording on standard error:
//
//     pe-record: 10543 samples in 12.03 s, 0 lost, 99.9 % of stacks complete, recorder: 1.20 % of a
//     CPU pe-record: the kernel throttled sampling 3 times: lower --freq                  a doubt
//     pe-record: 2 threads seen; own CPU 0.144 s, 1.20 % of 12.03 s          for --verbose only
//
// Numbers have no separators of thousands, so that scripts can read them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pe {

/// A figure of the summary, for programs.
struct Figure {
  std::string_view name;  ///< with its unit, if it has one
  std::string value;      ///< a number as in the summary, or a text
  bool is_text = false;
};

struct Closing {
  std::string summary;  ///< empty: nothing was recorded, and Source::why_empty() explains
  std::vector<std::string> doubts;   ///< losses and doubts, each with its fix; a line each
  std::vector<std::string> details;  ///< for --verbose; they share a line
  std::vector<Figure> figures;       ///< known even if nothing was recorded

  /// Adds the line "<what>: <fix>".
  void doubt(std::string_view what, std::string_view fix);
  /// Adds a detail, unless it is empty.
  void detail(std::string_view what);
  /// Adds a figure; nothing if the value is empty.
  void figure(std::string_view name, std::string_view value);
  void figure(std::string_view name, std::uint64_t value);
  /// Adds a text among the figures.
  void fact(std::string_view name, std::string_view text);
  /// Adds how many frames of a runtime were found, and how many of them have no name.  More than
  /// 5 % of these are a doubt.
  void named_frames(std::string_view runtime, std::uint64_t frames, std::uint64_t unreadable);
  /// Adds the doubts and details of `other`.
  void add(const Closing& other);
};

}  // namespace pe
