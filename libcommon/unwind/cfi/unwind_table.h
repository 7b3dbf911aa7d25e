// The rules of one ELF image: svma -> Rule.
//
// Functions are compiled when they are first asked for: a row is 8 bytes, a function 24, and each
// entry of the index 4.  Rows that say the same as the one before are merged.  A function whose
// FDE cannot be read has no rules.
//
// What a hostile image can make us keep is bounded by its size: an honest row takes at least one
// byte of the section, so beyond that many rows functions are refused.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "objects/image.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/cfi/cfi_section.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// All rows of an image in one sorted array; a row holds until the next one, the last for ever.
template <typename Row>
struct FlatRows {
  std::uint64_t base_svma = 0;  ///< what the rows' offsets count from
  std::vector<Row> rows = {};
  std::size_t functions = 0;
  /// Functions 4 GiB or more after the first, those that overlap another, unreadable ones, and
  /// those that a hostile section has beyond what its size allows.
  std::size_t left_out = 0;
};

/// Code that no FDE covers has rows of kNone.
using FlatRules = FlatRows<RuleRow>;

/// As RuleRow, of what somebody else makes of rows.
struct CodedRow {
  std::uint32_t offset;
  std::uint32_t code;

  constexpr bool operator==(const CodedRow&) const noexcept = default;
};
using FlatCodes = FlatRows<CodedRow>;

/// For a row, and whether its CIE is of signal frames.
using RowCoder = std::function<std::uint32_t(const CfiRow& row, bool is_signal_frame)>;

class UnwindTable {
 public:
  /// Reads the sections that it needs; the image is not needed afterwards.  An image without
  /// unwind information, or of another architecture, gives a table without rules.
  explicit UnwindTable(const objects::Image& image);
  /// Of a section that is had by itself, and the segments of its image.
  explicit UnwindTable(CfiSection section, std::vector<objects::Segment> segments = {});

  /// The rule for the instruction at `svma`; kNone if no function covers it.
  /// For a caller that is the last byte of its call: the return address less one.
  Rule rule(std::uint64_t svma);

  /// Everything that the section says there, for what no rule can express; nullopt if no
  /// function covers it.  Interprets the whole function each time: about a microsecond.
  struct FullRow {
    CfiRow row;  ///< expressions live as long as the table
    bool is_signal_frame;
    std::size_t cost;  ///< about as many bytes were interpreted, or will be by who follows it
  };
  [[nodiscard]] std::optional<FullRow> full_row(std::uint64_t svma) const;

  /// Compiles every function, which the table itself does not keep.
  [[nodiscard]] FlatRules flat_rules() const;
  /// The same with another's codes, `none` where no FDE says anything: for unwinders that know
  /// other rules.  Rows that follow each other and have one code are merged.  Stops soon after
  /// `max_rows`.
  [[nodiscard]] FlatCodes flat_codes(const RowCoder& code_of, std::uint32_t none,
                                     std::size_t max_rows) const;

  /// Of the sections that it has read.
  [[nodiscard]] std::size_t section_bytes() const noexcept { return section_bytes_; }
  /// Whether there is any unwind information.
  [[nodiscard]] bool has_rules() const noexcept { return fde_count() != 0; }
  /// Where a mapping of code from `file_offset` on was linked to; see
  /// objects::svma_of_code_mapping().
  [[nodiscard]] std::optional<std::uint64_t> svma_of_mapping(
      std::uint64_t file_offset) const noexcept;

  struct Statistics {
    std::size_t functions_compiled = 0;
    std::size_t functions_refused = 0;  ///< unreadable, damaged, or too many rows
    std::size_t rows = 0;               ///< after merging
  };
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }

 private:
  struct Function {
    std::uint64_t start_svma;
    std::uint32_t bytes;
    std::uint32_t row_count;
    std::size_t first_row;
  };

  /// A section, and which of its functions have been compiled.
  struct Part {
    explicit Part(CfiSection whole) : section(std::move(whole)), compiled(section.fde_count()) {}

    CfiSection section;
    std::vector<std::uint32_t> compiled;  ///< by FDE: 0 not yet, or 1 + index of functions_
  };
  /// An FDE by its place.
  struct Listed {
    std::uint64_t start_svma;
    const CfiSection* section;
    std::size_t number;
  };

  void add(CfiSection section);
  [[nodiscard]] std::size_t fde_count() const noexcept;
  const Function* function_at(std::uint64_t svma);
  std::uint32_t compile(const CfiSection& section, std::size_t fde_number);
  [[nodiscard]] std::vector<Listed> list_fdes() const;
  template <typename Coder>
  [[nodiscard]] FlatRows<typename Coder::Row> flatten(const Coder& coder,
                                                      std::size_t max_rows) const;

  std::vector<Part> parts_;  ///< the first that covers an address has its rule
  std::vector<objects::Segment> segments_;
  std::vector<Function> functions_;
  std::vector<RuleRow> rows_;
  std::size_t section_bytes_ = 0;  ///< and the most rows that they can say
  Statistics statistics_;
};

}  // namespace pe::unwind
