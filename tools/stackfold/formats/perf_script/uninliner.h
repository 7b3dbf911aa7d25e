// Implements --inline: finds the functions inlined at the place of a perf script frame line.
//
// stackcollapse-perf.pl runs addr2line.  This file uses the project's own DWARF reader, so no name
// from the recording reaches a shell.  It also finds inlined functions in programs that are not
// loaded at their link address.
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
  /// `with_context`: add file and line to each name.
  Uninliner(const FrameRules& rules, bool with_context)
      : rules_(rules), with_context_(with_context) {}

  /// Returns the frames of a line, outermost first; empty if its place is unknown.  The result is
  /// valid until the next call.  `is_return`: the frame's address is a return address.
  const std::vector<std::string>& frames_at(const PerfFrame& frame, bool is_return);

  /// The number of modules named by frames that are unreadable or have no debug information.
  [[nodiscard]] std::uint64_t modules_without() const noexcept { return modules_without_; }
  [[nodiscard]] const std::string& first_without() const noexcept { return first_without_; }

 private:
  CodeModule& module_at(std::string_view path);
  std::vector<std::string> find(const PerfFrame& frame, bool is_return);
  [[nodiscard]] std::string text_of(const names::SourceFrame& source, std::string_view mark) const;

  FrameRules rules_;
  bool with_context_;
  std::unordered_map<std::string, CodeModule> modules_;
  std::unordered_map<std::string, std::vector<std::string>> known_;  ///< by key_
  std::string key_;
  std::uint64_t modules_without_ = 0;
  std::string first_without_;
};

}  // namespace pe::fold
