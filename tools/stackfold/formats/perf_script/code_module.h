// One program or library that frames of perf script name, for finding what was inlined there.
//
// The pc that perf prints is an address in the process (perf before 6.1) or an offset in the
// file, so it says little about a program that may be loaded anywhere; the function and the
// offset in it say more.  A pc is believed if the symbol table has that function there, else the
// function is looked up by its name.
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

namespace pe::fold {

/// A place in a module's code as perf script prints it.
struct PrintedPlace {
  std::uint64_t pc = 0;
  std::string_view function;            ///< without offset
  std::optional<std::uint64_t> offset;  ///< in the function, if it was printed
};

class CodeModule {
 public:
  /// Opens a regular file only; one that cannot be used has no debug information.
  explicit CodeModule(const std::string& path);

  [[nodiscard]] bool has_debug_information() const noexcept { return inlines_ != nullptr; }

  /// Innermost inlined function first; `is_return`: it is where a call returns to, and the call
  /// stands before.  Empty if the place cannot be told, or has no debug information.
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
  std::unordered_multimap<std::string, std::uint32_t> symbols_of_name_;  ///< made when needed
};

}  // namespace pe::fold
