// Implements --inline: finds the functions inlined at the place of a perf script frame line.
//
// stackcollapse-perf.pl runs addr2line.  This file uses the project's own DWARF reader, so no name
// from the recording reaches a shell.  It also finds inlined functions in programs that are not
// loaded at their link address.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "names/dwarf/inlines.h"
#include "objects/symbol_table.h"
#include "stackfold/formats/perf_script/frame.h"

namespace pe::fold {

// Finds the inlined functions in one program or library that frames of perf script name.
//
// perf prints a pc that is an address in the process (perf before 6.1) or an offset in the file.
// So the pc alone does not identify the place in a program that may be loaded anywhere.  The
// function and the offset in it are more reliable.  CodeModule accepts a pc if the symbol table has
// the printed function there; otherwise it looks up the function by its name.

/// A place in a module's code, as perf script prints it.
struct PrintedPlace {
  std::uint64_t pc = 0;
  std::string_view function;            ///< without the offset
  std::optional<std::uint64_t> offset;  ///< in the function, if it was printed
};

class CodeModule {
 public:
  /// Opens regular files only.  An unusable file counts as one without debug information.
  explicit CodeModule(const std::string& path);

  [[nodiscard]] bool has_debug_information() const noexcept { return inlines_ != nullptr; }

  /// Returns the functions at a place, innermost inlined one first.  `is_return`: the place is a
  /// return address, so its call is before it.  Empty if the place is ambiguous or unknown, or has
  /// no debug information.
  std::vector<names::SourceFrame> frames_at(PrintedPlace place, bool is_return);

 private:
  std::optional<std::uint64_t> locate(const PrintedPlace& place);
  bool is_at(std::uint64_t svma, const PrintedPlace& place, bool by_name);
  std::optional<std::uint64_t> locate_by_name(const PrintedPlace& place);
  const std::string& name_of(const objects::Symbol& symbol);

  std::optional<objects::Image> image_;
  objects::SymbolTable symbols_;
  std::unique_ptr<names::Inlines> inlines_;
  std::unordered_map<std::uint32_t, std::string> names_;                 ///< demangled, by index
  std::unordered_multimap<std::string, std::uint32_t> symbols_of_name_;  ///< filled on first use
};

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
