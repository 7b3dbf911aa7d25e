// Where code is mapped in one process, and the rule for each address of it.
//
// Knows no pids and opens no files: the caller says what is mapped, and gives the tables of
// images when they are first needed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "unwind/cfi/unwind_table.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// An executable mapping.  Others need not be told, except that they unmap what was there.
struct CodeMapping {
  std::uint64_t start_avma;
  std::uint64_t end_avma;
  std::uint64_t file_offset;           ///< of the first byte; of an image in memory: from its start
  std::optional<std::uint32_t> image;  ///< the caller's number; none: code that no file describes
};

/// The table of an image, or nullptr if it cannot be had.  Asked once a mapping; the table must
/// outlive the address spaces, which share it.
using ImageSource = std::function<UnwindTable*(std::uint32_t image)>;

/// Copies code at `avma` into `into`; how many bytes that were, 0 if it cannot be read.
using CodeSource = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

/// The table of code that no file describes, by avma, or nullptr; it may change with the next call.
using TableOfCode = std::function<UnwindTable*(std::uint64_t avma)>;

class RuleCache;

class AddressSpace {
 public:
  /// `code` is asked for the bytes of code that no table describes; it may be empty, as `tables`.
  explicit AddressSpace(ImageSource images, CodeSource code = nullptr, TableOfCode tables = nullptr)
      : images_(std::move(images)), code_(std::move(code)), tables_(std::move(tables)) {}

  /// Maps code, replacing what was there.  Ignored if it ends before it starts.
  void map(const CodeMapping& mapping);
  /// Takes away what is mapped in [start, end): unmapped, or replaced by data.
  void unmap(std::uint64_t start_avma, std::uint64_t end_avma);
  /// How many mappings there are.
  [[nodiscard]] std::size_t size() const noexcept { return ranges_.size(); }
  /// Code that no file describes has other tables from now on.
  void withdraw_rules() noexcept { stamp_ = {}; }
  /// Forgets everything, as execve(2) does.
  void clear();

  /// Where an address is mapped; nullptr if no code is.  Valid until the next change.
  [[nodiscard]] const CodeMapping* find(std::uint64_t avma) const noexcept;

  /// The rule for the instruction at `avma`: kNotExecutable if no code is mapped there, kNone if
  /// no table describes it.  Such code has the rule of the stub that it is, if it can be read.
  Rule rule(std::uint64_t avma);
  /// Whether code is mapped at `avma` that no file describes and that could not be read.
  [[nodiscard]] bool is_unread(std::uint64_t avma) const noexcept;

  /// An image's table, and an address as that knows it.
  struct Place {
    UnwindTable* table;
    std::uint64_t svma;
  };
  /// nullopt where no image with a table is mapped.
  std::optional<Place> place(std::uint64_t avma);

 private:
  friend class RuleCache;

  struct Range : CodeMapping {
    bool is_resolved = false;
    bool is_unread = true;  ///< of its code nothing could be read, the last time
    UnwindTable* table = nullptr;
    std::uint64_t bias = 0;  ///< svma = avma - bias
  };

  void resolve(Range& range) const;
  std::optional<Place> place(Range& range, std::uint64_t avma) const;
  Rule rule_of_bytes(Range& range, std::uint64_t avma) const;

  ImageSource images_;
  CodeSource code_;
  TableOfCode tables_;
  std::map<std::uint64_t, Range> ranges_;  ///< by start, disjoint

  /// By what a RuleCache knows this space's rules; none after one was withdrawn.
  struct Stamp {
    const RuleCache* cache = nullptr;
    std::uint64_t generation = 0;
  };
  Stamp stamp_;
};

}  // namespace pe::unwind
