// Finds the functions, or the variables, of one module (an executable or a shared library), with
// readable names.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  std::string_view symbol;   ///< the name as in the file; lives as long as the module
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

// Counts and reports why frames have no names.

enum class Unnamed : std::uint8_t {
  kNone,          ///< the frame has a name
  kNotMapped,     ///< nothing was mapped at the address
  kNoMap,         ///< code generated at run time, without a readable perf map or jitdump
  kNotInMap,      ///< the perf map or jitdump has no entry
  kNotWritten,    ///< the program has not written its jitdump to the end
  kKernelHidden,  ///< /proc/kallsyms is restricted or missing
  kOtherKernel,   ///< recorded under a kernel that is not running here
  kNotInKernel,   ///< no kernel symbol covers it
  kFileMissing,
  kBuildIdDiffers,  ///< the file has been replaced since the recording
  kFileDenied,
  kFileUnusable,  ///< not ELF, damaged, not a regular file
  kStripped,      ///< the file has no symbols, or only exported ones
  kNotCovered,    ///< the file has symbols, but none covers the address
  kTooCostly,     ///< reading the file takes more time or memory than the budget allows
};
inline constexpr std::size_t kUnnamedReasons = 15;

/// Returns a text such as "in files stripped of symbols", for the closing line.
const char* describe(Unnamed reason);

Unnamed reason_of(NoName why);

using ByReason = std::array<std::uint64_t, kUnnamedReasons>;

/// Counts all frames, and frames without a name by reason and by module.
class FrameCounts {
 public:
  /// Returns the number under which frames of a module are counted.
  std::uint32_t module_number(const std::string& module) {
    const auto [item, is_new] =
        numbers_.try_emplace(module, static_cast<std::uint32_t>(modules_.size()));
    if (is_new)
      modules_.push_back({.name = &item->first});
    return item->second;
  }
  /// Starts a new sample: it has the frames counted from now on.
  void begin_sample() { ++samples_; }
  void count(Unnamed reason, std::uint32_t module) {
    Module& of = modules_[module];
    ++of.by_reason[static_cast<std::size_t>(reason)];
    if ((reason == Unnamed::kStripped || reason == Unnamed::kNotWritten) &&
        of.last_hidden != samples_) {
      of.last_hidden = samples_;
      ++of.hidden_samples;
    }
  }

  /// The number of frames of a module that have no name for one reason.
  struct Row {
    std::string_view module;
    Unnamed reason;
    std::uint64_t frames;
  };
  /// Returns the rows, the largest first.
  [[nodiscard]] std::vector<Row> rows() const;

  /// A module, and the number of samples with frames of it without a name.
  struct Hiding {
    std::string_view module;
    std::uint64_t samples;
  };
  /// Returns the stripped files, or the jitdumps not written to their end, the largest first.
  [[nodiscard]] std::vector<Hiding> hiding(Unnamed reason) const;
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  [[nodiscard]] std::uint64_t frames() const noexcept { return unnamed() + by_reason()[0]; }
  [[nodiscard]] ByReason by_reason() const noexcept;
  [[nodiscard]] std::uint64_t unnamed() const noexcept;

 private:
  struct Module {
    const std::string* name;  ///< in numbers_, whose nodes do not move
    ByReason by_reason = {};
    std::uint64_t hidden_samples = 0;  ///< samples with a frame that hiding() would report
    std::uint64_t last_hidden = 0;     ///< the number of the last of these samples
  };
  std::uint64_t samples_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Module> modules_;
};

/// Returns a line such as "120 of 4000 frames without a name (3.0 %): 100 in files stripped of
/// symbols, 20 in files that are gone"; empty if all frames have a name.
std::string describe(const FrameCounts& counts);

/// Returns a line about the stripped files that hide most names: their shares of the samples, and
/// how to get their symbols; empty if they hide few.  `has_servers`: debuginfod servers were
/// queried.  `is_go` returns whether Go built a file.
std::string describe_stripped(const FrameCounts& counts, bool has_servers,
                              const std::function<bool(std::string_view)>& is_go);

/// Returns a line for the jitdumps that are not written to their end; empty if that hides few
/// names.
std::string describe_unwritten(const FrameCounts& counts);

/// Returns the lines of a table: frames, their share of all frames, module, reason.
std::vector<std::string> table(const FrameCounts& counts);

}  // namespace pe::names
