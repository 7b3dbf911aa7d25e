// Finds the functions, or the variables, of one module (an executable or a shared library), with
// readable names.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/byte_reader.h"
#include "objects/debug_file.h"
#include "objects/image.h"
#include "objects/symbol_table.h"

namespace pe::names {

/// Why an address has no name.
enum class NoName {
  kMissing,         ///< no such file
  kOtherBuildId,    ///< the file is not the recorded one
  kPermission,      ///< we may not read the file
  kNotRegular,      ///< a folder, a FIFO, a device
  kUnreadable,      ///< an I/O error, or no descriptors left
  kNotElf,          ///< something else
  kUnsupported,     ///< ELF of an unsupported kind
  kDamaged,         ///< invalid ELF headers or symbol tables
  kNoSymbols,       ///< stripped except for exported symbols, and no debug file has the rest
  kOtherDebugFile,  ///< stripped, and its debug file belongs to another build or is damaged
  kNotCovered,      ///< there are symbols, but none covers the address
  kTooCostly,       ///< reading takes more time or memory than the budget allows
};

struct FoundSymbol {
  std::string_view name;     ///< demangled; lives as long as the module
  std::uint64_t start_svma;  ///< of the function or variable
  std::uint64_t offset;      ///< into it, bytes
  bool has_size;             ///< as in objects::Symbol
};

/// One module, opened once.  The first look-up reads its symbols.  A symbol is
/// demangled when it is first found.
class ModuleSymbols {
 public:
  /// Accepts an image that objects::Image opened from a descriptor or from memory.  Never throws:
  /// an unusable file has no symbols, and why_unnamed() returns the reason.
  explicit ModuleSymbols(objects::OpenResult opened);
  /// Does the same for the file `path`.  If it is stripped, symbols also come from its separate
  /// debug file or its .gnu_debugdata.  `finder` must outlive the module.
  ModuleSymbols(objects::OpenResult opened, std::string path, objects::DebugFinder& finder,
                objects::SymbolKind kind = objects::SymbolKind::kCode);

  /// Finds the function that contains the byte at `file_offset`.
  std::optional<FoundSymbol> find(std::uint64_t file_offset);
  /// Finds the function, or the variable, at a linked address.
  std::optional<FoundSymbol> find_svma(std::uint64_t svma);

  /// Returns the linked address of that byte; nullopt if it is not loaded, or the file could not be
  /// opened.
  [[nodiscard]] std::optional<std::uint64_t> svma_of(std::uint64_t file_offset) const noexcept;

  /// Returns why a look-up found nothing: the same for every address of
  /// this module, and normally kNotCovered if there are symbols at all.
  NoName why_unnamed();

  /// Forgets the symbols for good: they are too costly.
  void give_up();
  /// Returns the memory that the symbols take.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return table_ ? table_->memory_bytes() : 0;
  }

  /// For unwinding and DWARF; nullptr if the file could not be opened.
  [[nodiscard]] const objects::Image* image() const noexcept { return image_ ? &*image_ : nullptr; }

  /// Reads the symbols, then closes the file: a system-wide recording has more
  /// modules than a process may have open files.  Symbols and addresses stay; image() can no
  /// longer read contents.
  void release_file();

 private:
  const objects::SymbolTable& table();
  objects::SymbolTable read_table();

  std::optional<objects::Image> image_;
  std::string path_;
  objects::SymbolKind kind_ = objects::SymbolKind::kCode;
  objects::DebugFinder* finder_ = nullptr;  ///< null: search only the image
  bool is_debug_file_refused_ = false;
  bool is_stripped_ = false;  ///< no full symbol table anywhere
  bool has_given_up_ = false;
  NoName open_failure_ = NoName::kNotCovered;
  std::optional<objects::SymbolTable> table_;
  std::unordered_map<std::uint32_t, std::string> names_;  ///< by symbol index; nodes do not move
};

}  // namespace pe::names
