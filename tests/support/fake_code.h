// Code that exists nowhere, at invented addresses, with unwind rules that a test can read.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/cfi_builder.h"
#include "unwind/address_space.h"

namespace pe::testing {

/// The functions of FakeCode start at this avma, svma and file offset.
inline constexpr std::uint64_t kFakeCode = 0x10000;
inline constexpr std::uint64_t kFakeCodeBytes = 0x10000;

/// Functions of 0x100 bytes, the first at kFakeCode.  At its start each has pushed nothing;
/// programs[i] adds the rest of its rules.  Function number `signal` is one that a signal handler
/// returns to.  No table describes the code after the last function.
class FakeCode {
 public:
  explicit FakeCode(const std::vector<std::string>& programs = {},
                    std::optional<std::size_t> signal = std::nullopt)
      : table_(section(programs, signal),
               {{kFakeCode, kFakeCodeBytes, kFakeCode, kFakeCodeBytes, true}}) {}

  /// Maps all the code at the address that it was linked to, as image 0.
  unwind::AddressSpace space() {
    unwind::AddressSpace space(source());
    space.map(mapping());
    return space;
  }
  unwind::ImageSource source() {
    return [this](std::uint32_t image) { return image == 0 ? &table_ : nullptr; };
  }
  static unwind::CodeMapping mapping() {
    return {kFakeCode, kFakeCode + kFakeCodeBytes, kFakeCode, 0};
  }
  unwind::UnwindTable& table() { return table_; }

 private:
  static unwind::CfiSection section(const std::vector<std::string>& programs,
                                    std::optional<std::size_t> signal) {
    CfiBuilder builder(0x80000);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      builder.cie({.augmentation = i == signal ? "zRS" : "zR"});
      builder.fde(kFakeCode + 0x100 * i, 0x100, programs[i]);
    }
    return {unwind::CfiFormat::kEhFrame, builder.section()};
  }

  unwind::UnwindTable table_;
};

}  // namespace pe::testing
