// --inline: the functions that were inlined where a frame line of perf script points.
//
// stackcollapse-perf.pl has addr2line tell it; here it is the project's own reader of DWARF, so no
// shell sees a name from the recording, and programs that are not loaded where they were
// linked have inlined functions too.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "stackfold/formats/perf_script/code_module.h"
#include "stackfold/formats/perf_script/frame.h"

namespace pe::fold {

class Uninliner {
 public:
  /// `with_context`: file and line behind each name.
  Uninliner(const FrameRules& rules, bool with_context)
      : rules_(rules), with_context_(with_context) {}

  /// The frames of a line, outermost first; empty if nothing is known of it.  Lives until the
  /// next call.  `is_return`: it is the address after a call.
  const std::vector<std::string>& frames_at(const PerfFrame& frame, bool is_return);

  /// Modules named by frames that have no debug information, or cannot be read.
  [[nodiscard]] std::uint64_t modules_without() const noexcept { return modules_without_; }
  [[nodiscard]] const std::string& first_without() const noexcept { return first_without_; }

 private:
  CodeModule& module_at(std::string_view path);
  std::vector<std::string> find(const PerfFrame& frame, bool is_return);
  [[nodiscard]] std::string text_of(const names::SourceFrame& source, std::string_view mark) const;

  FrameRules rules_;
  bool with_context_;
  std::unordered_map<std::string, CodeModule> modules_;
  std::unordered_map<std::string, std::vector<std::string>> known_;  ///< by what was printed
  std::string key_;
  std::uint64_t modules_without_ = 0;
  std::string first_without_;
};

}  // namespace pe::fold
