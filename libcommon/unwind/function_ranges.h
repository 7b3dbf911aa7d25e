// Finds where an image's functions start, from its unwind information.  This still separates the
// functions of an image whose symbols have been stripped.
//
// A part that the compiler has placed elsewhere (".cold") counts as a separate function.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"
#include "unwind/cfi/cfi_section.h"

namespace pe::unwind {

class FunctionRanges {
 public:
  FunctionRanges() = default;
  /// Reads the sections (14 MB of libLLVM, 4 ms) and does not need the image afterwards.
  explicit FunctionRanges(const objects::Image& image);

  struct Range {
    std::uint64_t start_svma, end_svma;
    std::uint64_t lsda_svma = 0;  ///< of its exception table (probes/source_places.h); 0: none
    [[nodiscard]] bool covers(std::uint64_t svma) const noexcept {
      return start_svma <= svma && svma < end_svma;
    }
  };
  /// The function that `svma` is in; nullopt if none covers it.
  [[nodiscard]] std::optional<Range> range_of(std::uint64_t svma) const noexcept;
  /// The first address (svma) of the function that `svma` is in; nullopt if none covers it.
  [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint64_t svma) const noexcept;
  /// Calls `on_range` for each function.
  void for_each(const std::function<void(const Range&)>& on_range) const;

 private:
  std::vector<CfiSection> sections_;
};

// Finds where other functions start after a symbol without a size, as hand-written assembly has
// them.  Local symbols of such code are often stripped, so the next symbol may be far.

/// Returns the addresses in `code`, which is at `start_svma`, from which on it is no longer the
/// function that starts there; sorted.  These are the starts and ends of functions with unwind
/// information.  In code without any, they are the multiples of 16 to which the code is padded
/// after a return, if nothing before jumps further.
std::vector<std::uint64_t> function_starts(Bytes code, std::uint64_t start_svma,
                                           const FunctionRanges& ranges);

}  // namespace pe::unwind
