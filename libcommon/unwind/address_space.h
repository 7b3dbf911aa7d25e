// Maps the executable memory of one process, and finds the rule for each address of it.
//
// An AddressSpace knows no pids and opens no files.  The caller supplies the mappings, and the
// tables of images when they are first needed.
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

/// An executable mapping.  Other mappings need not be reported, but they unmap the code they
/// replace.
struct CodeMapping {
  std::uint64_t start_avma;
  std::uint64_t end_avma;
  std::uint64_t file_offset;  ///< of the first byte; for an image in memory, counted from its start
  std::optional<std::uint32_t> image;  ///< the caller's number; none if no file describes the code
};

/// Returns the table of an image, or nullptr if it is unavailable.  Called once per mapping.  The
/// table must outlive the address spaces, which share it.
using ImageSource = std::function<UnwindTable*(std::uint32_t image)>;

/// Copies code at `avma` into `into`.  Returns the number of bytes copied, 0 if it is unreadable.
using CodeSource = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

/// Returns the table of code that no file describes, by avma, or nullptr.  The next call may
/// invalidate it.
using TableOfCode = std::function<UnwindTable*(std::uint64_t avma)>;

/// Returns the rule of code that a runtime has made and knows itself, by avma; nullopt if it is not
/// such code.
using RuleOfCode = std::function<std::optional<Rule>(std::uint64_t avma)>;

class RuleCache;

class AddressSpace {
 public:
  /// `code` reads the bytes of code that no table describes.  All but `images` may be empty.
  explicit AddressSpace(ImageSource images, CodeSource code = nullptr, TableOfCode tables = nullptr,
                        RuleOfCode rules = nullptr)
      : images_(std::move(images)),
        code_(std::move(code)),
        tables_(std::move(tables)),
        rules_(std::move(rules)) {}

  /// Maps code and replaces earlier mappings of its addresses.  Ignores mappings that end before
  /// they start.
  void map(const CodeMapping& mapping);
  /// Removes all mappings in [start, end): they were unmapped or replaced by data.
  void unmap(std::uint64_t start_avma, std::uint64_t end_avma);
  /// The number of mappings.
  [[nodiscard]] std::size_t size() const noexcept { return ranges_.size(); }
  /// Invalidates known rules, because code that no file describes has new tables.
  void withdraw_rules() noexcept { stamp_ = {}; }

  /// Returns the mapping of an address; nullptr if no code is mapped there.  Valid until the next
  /// change.
  [[nodiscard]] const CodeMapping* find(std::uint64_t avma) const noexcept;

  /// Returns the rule for the instruction at `avma`; kNotExecutable if no code is mapped there.
  /// Code without a table gets the rule of the stub that its bytes match, otherwise kNone.
  Rule rule(std::uint64_t avma);
  /// Whether `avma` is in code that no file describes and that could not be read.
  [[nodiscard]] bool is_unread(std::uint64_t avma) const noexcept;

  /// Whether `avma` can be a return address: it is in code, after a call.  Code that cannot be read
  /// is assumed to have one.
  [[nodiscard]] bool is_return_address(std::uint64_t avma) const;

  /// Whether `avma` is in code that a runtime knows itself.
  [[nodiscard]] bool is_of_runtime(std::uint64_t avma) const;

  /// The table of an image, and the svma of an address in it.
  struct Place {
    UnwindTable* table;
    std::uint64_t svma;
  };
  /// Returns nullopt if `avma` is in no mapping with a table.
  std::optional<Place> place(std::uint64_t avma);

 private:
  friend class RuleCache;

  struct Range : CodeMapping {
    bool is_resolved = false;
    bool is_unread = true;  ///< nothing of its code could be read at the last attempt
    UnwindTable* table = nullptr;
    std::uint64_t bias = 0;  ///< svma = avma - bias
  };

  void resolve(Range& range) const;
  std::optional<Place> place(Range& range, std::uint64_t avma) const;
  Rule rule_of_bytes(Range& range, std::uint64_t avma) const;

  ImageSource images_;
  CodeSource code_;
  TableOfCode tables_;
  RuleOfCode rules_;
  std::map<std::uint64_t, Range> ranges_;  ///< by start, disjoint

  /// Identifies this space's rules in a RuleCache.  Empty after a rule was withdrawn.
  struct Stamp {
    const RuleCache* cache = nullptr;
    std::uint64_t generation = 0;
  };
  Stamp stamp_;
};

}  // namespace pe::unwind
