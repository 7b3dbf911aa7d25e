// The functions of one module (an executable or a shared library), with readable names.
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
  kOtherBuildId,    ///< there is a file, but not the one that was recorded
  kPermission,      ///< the file is not for us
  kNotRegular,      ///< a folder, a FIFO, a device
  kUnreadable,      ///< an I/O error, or no descriptors left
  kNotElf,          ///< something else
  kUnsupported,     ///< ELF of a kind that we do not read
  kDamaged,         ///< ELF headers or symbol tables that make no sense
  kNoSymbols,       ///< stripped but for what it exports, and no debug file has the rest
  kOtherDebugFile,  ///< stripped, and a debug file that lies there is of another build or damaged
  kNotCovered,      ///< there are symbols, but none here
};

struct FoundSymbol {
  std::string_view name;     ///< demangled; lives as long as the module
  std::uint64_t start_svma;  ///< of the function
  std::uint64_t offset;      ///< into the function, bytes
};

/// One module, opened once.  Its symbols are read at the first look-up, and a
/// name is demangled at its first.
class ModuleSymbols {
 public:
  /// Never throws: a file that cannot be used has no names, and why_unnamed() says why.
  explicit ModuleSymbols(const std::string& path);
  /// What objects::Image's functions made of a descriptor or of memory.
  explicit ModuleSymbols(objects::OpenResult opened);
  /// The same, of the file `path`.  Where it is stripped, symbols come from its separate debug file
  /// or its .gnu_debugdata as well.  `finder` must outlive it.
  ModuleSymbols(objects::OpenResult opened, std::string path, objects::DebugFinder& finder);

  /// The function that the byte at `file_offset` is in.
  std::optional<FoundSymbol> find(std::uint64_t file_offset);
  /// The function at an address as linked.
  std::optional<FoundSymbol> find_svma(std::uint64_t svma);

  /// Where that byte was linked to; nullopt if it is not loaded, or the file could not be opened.
  [[nodiscard]] std::optional<std::uint64_t> svma_of(std::uint64_t file_offset) const noexcept;
  /// Empty if there is none.
  [[nodiscard]] Bytes build_id() const noexcept;

  /// What it means if a look-up found nothing: the same for every address of
  /// this module, and normally kNotCovered if there are symbols at all.
  NoName why_unnamed();

  /// For unwinding and DWARF; nullptr if the file could not be opened.
  [[nodiscard]] const objects::Image* image() const noexcept { return image_ ? &*image_ : nullptr; }

  /// Reads the symbols, then gives the file descriptor back: a system-wide
  /// recording has more modules than a process may have open.  Names, addresses
  /// and the build id stay; image() can no longer read contents.
  void release_file();

 private:
  const objects::SymbolTable& table();
  objects::SymbolTable read_table();

  std::optional<objects::Image> image_;
  std::string path_;
  objects::DebugFinder* finder_ = nullptr;  ///< none: the image alone
  bool is_debug_file_refused_ = false;
  bool is_stripped_ = false;  ///< no full symbol table anywhere
  NoName open_failure_ = NoName::kNotCovered;
  std::optional<objects::SymbolTable> table_;
  std::unordered_map<std::uint32_t, std::string> names_;  ///< by symbol index; nodes do not move
};

}  // namespace pe::names
