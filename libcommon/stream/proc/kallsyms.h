// The kernel's functions, from /proc/kallsyms.
//
// A line is `ffffffff81000000 T name\t[module]`, the last part only for what is
// not in the kernel image: modules, BPF programs, trampolines.  Kept are text
// symbols (types t, T, w, W), one for each address (base/alias.h).  There are no sizes: a function
// reaches to the next, but not beyond the end of the text it is in; the last of a
// module at most to the end of the page after its own.
//
// Source: kernel/kallsyms.c (s_show), scripts/kallsyms.c, nm(1) for the types.
// Cost: 122,000 lines 70 ms, 40 of them for the kernel to print them.
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
  kNoSymbols,   ///< not one line of text symbols
};

struct KernelSymbol {
  std::string_view name;  ///< lives as long as the Kallsyms, also when that is moved
  std::uint64_t start;
  std::string_view module;  ///< "kernel", or what stands in brackets: "nfs", "bpf"
};

class Kallsyms {
 public:
  /// Reads a file in the form of /proc/kallsyms.
  static std::variant<Kallsyms, KallsymsFailure> load(const std::string& path = "/proc/kallsyms");
  /// The same from memory.
  static std::variant<Kallsyms, KallsymsFailure> parse(std::string_view text);

  /// The function that `address` is in.
  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address) const noexcept;

  /// Where the kernel image's text starts (_text, or else _stext) and ends (_etext).
  [[nodiscard]] std::optional<std::uint64_t> text_start() const noexcept { return text_start_; }
  [[nodiscard]] std::optional<std::uint64_t> text_end() const noexcept { return text_end_; }

  /// Functions, one for each address.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Lines that were not understood, or too many.
  [[nodiscard]] std::uint64_t skipped_lines() const noexcept { return skipped_lines_; }

 private:
  struct Line;
  struct Entry {
    std::uint64_t start;
    std::uint32_t name;  ///< offset in names_
    std::uint16_t module;
    Binding binding;
    bool is_end;  ///< marks the end of a text, and is no function
  };

  void add_line(std::string_view line);
  void add_symbol(const Line& line);
  [[nodiscard]] std::optional<std::uint16_t> module_index(std::string_view name);
  [[nodiscard]] bool is_better(const Entry& a, const Entry& b) const;
  [[nodiscard]] std::string_view name_of(const Entry& entry) const noexcept;
  void keep_one_per_address();

  std::vector<Entry> entries_;  ///< by start, no two equal
  std::vector<char> names_;     ///< each ended by a NUL
  std::vector<std::string> modules_{"kernel"};
  std::map<std::string, std::uint16_t, std::less<>> module_indices_;  ///< only while parsing
  std::optional<std::uint64_t> text_start_, text_end_;
  std::uint64_t skipped_lines_ = 0;
  bool has_address_ = false;
};

}  // namespace pe::stream
