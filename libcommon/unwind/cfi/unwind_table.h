// The rules of one ELF image: maps svma to Rule.
//
// A function is compiled when an address in it is first looked up.  A row takes 8 bytes, a function
// 24, and each entry of the index 4.  A row that equals the one before is merged with it.  A
// function whose FDE is unreadable has no rules.
//
// The size of a malicious image bounds the memory that it can use.  A valid row takes at least one
// byte of the section.  Functions beyond that many rows are refused.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "objects/image.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/cfi/cfi_section.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// A code that holds from `offset` to the next row: the bits of a Rule, or chosen by the caller.
struct CodedRow {
  std::uint32_t offset;  ///< bytes from the start of the function, or of the whole table
  std::uint32_t code;

  constexpr bool operator==(const CodedRow&) const noexcept = default;
};

/// All rows of an image in one sorted array.  The last row has no end.
struct FlatCodes {
  std::uint64_t base_svma = 0;  ///< the rows' offsets count from here
  std::vector<CodedRow> rows = {};
  std::size_t functions = 0;
  /// Functions 4 GiB or more after the first, those that overlap another, unreadable ones, and
  /// those beyond the limit that the section's size sets.
  std::size_t left_out = 0;
};

/// Returns the code for a row; `is_signal_frame` comes from the row's CIE.
using RowCoder = std::function<std::uint32_t(const CfiRow& row, bool is_signal_frame)>;

class UnwindTable {
 public:
  /// Reads the sections that it needs, and does not need the image afterwards.  An image without
  /// unwind information, or of another architecture, gives a table without rules.
  explicit UnwindTable(const objects::Image& image);
  /// Uses a single section, and the segments of its image.
  explicit UnwindTable(CfiSection section, std::vector<objects::Segment> segments = {});

  /// Returns the rule for the instruction at `svma`; kNone if no function covers it.  For a caller,
  /// this is the last byte of its call: the return address less one.
  Rule rule(std::uint64_t svma);

  /// Returns everything that the section describes at `svma`, for rows that no rule can express;
  /// nullopt if no function covers it.  Interprets the whole function each time: about a
  /// microsecond.
  struct FullRow {
    CfiRow row;  ///< expressions live as long as the table
    bool is_signal_frame;
    std::size_t cost;  ///< about the number of bytes interpreted here, and later to follow the row
  };
  [[nodiscard]] std::optional<FullRow> full_row(std::uint64_t svma) const;

  /// Compiles every function with the caller's codes, for unwinders that know other rules.  `none`
  /// is the code where no FDE applies.  Consecutive rows with the same code are merged.  Stops soon
  /// after `max_rows`, or when `spender` may not pay.  The table itself does not keep the result.
  [[nodiscard]] FlatCodes flat_codes(const RowCoder& code_of, std::uint32_t none,
                                     std::size_t max_rows, Spender* spender = nullptr) const;

  /// The size of the sections that it has read.
  [[nodiscard]] std::size_t section_bytes() const noexcept { return section_bytes_; }
  /// Whether there is any unwind information.
  [[nodiscard]] bool has_rules() const noexcept { return fde_count() != 0; }
  /// Returns the svma of a mapping of code that starts at `file_offset`; see
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
  /// The place of an FDE.
  struct Listed {
    std::uint64_t start_svma;
    const CfiSection* section;
    std::size_t number;
  };

  void add(CfiSection section);
  [[nodiscard]] std::size_t fde_count() const noexcept;
  const Function* function_at(std::uint64_t svma);
  std::uint32_t compile(const CfiSection& section, std::size_t fde_number);
  [[nodiscard]] std::vector<Listed> list_fdes(Spender& spender) const;

  std::vector<Part> parts_;  ///< the first part that covers an address supplies its rule
  std::vector<objects::Segment> segments_;
  std::vector<Function> functions_;
  std::vector<CodedRow> rows_;     ///< with Rule::bits()
  std::size_t section_bytes_ = 0;  ///< also the largest number of rows that they can describe
  Statistics statistics_;
};

}  // namespace pe::unwind
