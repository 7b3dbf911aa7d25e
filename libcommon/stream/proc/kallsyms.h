// The kernel's functions, from /proc/kallsyms.
//
// A line is `ffffffff81000000 T name\t[module]`.  Only symbols outside the kernel image have the
// last part: modules, BPF programs, trampolines.  Kallsyms keeps text symbols (types t, T, w, W),
// one for each address (base/alias.h).  The file contains no sizes.  A function extends to the next
// one, but not beyond the end of its text.  The last function of a module extends at most to the
// end of the page after the one it starts in.
//
// Source: kernel/kallsyms.c (s_show), scripts/kallsyms.c, nm(1) for the types.
// Cost: 70 ms for 122,000 lines; the kernel needs 40 of them to print the lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/alias.h"

namespace pe::stream {

/// Why there are no kernel symbols.
enum class KallsymsFailure {
  kMissing,
  kPermission,
  kUnreadable,  ///< not a regular file, an I/O error
  kTooLarge,    ///< more than 256 MiB; real ones have about 10
  kRestricted,  ///< all addresses are zero: kptr_restrict, or no CAP_SYSLOG
  kNoSymbols,   ///< there is no text symbol
};

struct KernelSymbol {
  std::string_view name;  ///< valid as long as the Kallsyms lives, also when that is moved
  std::uint64_t start;
  std::string_view module;  ///< "kernel", or the text in brackets: "nfs", "bpf"
};

class Kallsyms {
 public:
  /// Reads a file in the form of /proc/kallsyms.
  static std::variant<Kallsyms, KallsymsFailure> load(const std::string& path = "/proc/kallsyms");
  /// Parses the same text from memory.
  static std::variant<Kallsyms, KallsymsFailure> parse(std::string_view text);

  /// Returns the function that contains `address`.
  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address) const noexcept;

  /// Returns the start (_text, or else _stext) of the kernel image's text.
  [[nodiscard]] std::optional<std::uint64_t> text_start() const noexcept { return text_start_; }

  /// Returns the number of symbols, one for each address.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Returns the number of lines that were malformed, or beyond a limit.
  [[nodiscard]] std::uint64_t skipped_lines() const noexcept { return skipped_lines_; }

 private:
  struct Line;
  struct Entry {
    std::uint64_t start;
    std::uint32_t name;  ///< offset in names_
    std::uint16_t module;
    Binding binding;
    bool is_end;  ///< marks the end of a text, and is not a function
  };

  void add_line(std::string_view line);
  void add_symbol(const Line& line);
  [[nodiscard]] std::optional<std::uint16_t> module_index(std::string_view name);
  [[nodiscard]] bool is_better(const Entry& a, const Entry& b) const;
  [[nodiscard]] std::string_view name_of(const Entry& entry) const noexcept;
  void keep_one_per_address();

  std::vector<Entry> entries_;  ///< sorted by start; no two starts are equal
  std::vector<char> names_;     ///< each ended by a NUL
  std::vector<std::string> modules_{"kernel"};
  std::map<std::string, std::uint16_t, std::less<>> module_indices_;  ///< only while parsing
  std::optional<std::uint64_t> text_start_, text_end_;
  std::uint64_t skipped_lines_ = 0;
  bool has_address_ = false;
};

}  // namespace pe::stream
