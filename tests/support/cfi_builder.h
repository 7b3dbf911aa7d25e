// Builds sections of call frame information entry by entry.
// SPDX-License-Identifier: MIT
#pragma once

#include <dwarf.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "unwind/cfi/cfi_section.h"

namespace pe::testing {

/// Instructions or an expression, byte by byte.
inline std::string code(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes)
    text += static_cast<char>(byte);
  return text;
}

/// CFA = rsp + 8, with the return address below the CFA: the first rule of every x86-64 function.
inline std::string usual_start() { return code({DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}); }

class CfiBuilder {
 public:
  struct Cie {
    int version = 1;
    std::string augmentation = "zR";
    int pointer_encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
    std::string more_augmentation_data = {};  ///< after that of 'R', which comes first
    std::string instructions = usual_start();
    int code_alignment = 1;
    int return_register = 16;
  };

  explicit CfiBuilder(std::uint64_t svma, unwind::CfiFormat format = unwind::CfiFormat::kEhFrame)
      : svma_(svma), format_(format) {}

  /// Returns the offset of the CIE.
  std::size_t cie(const Cie& cie) {
    cie_ = cie;
    const bool is_eh = format_ == unwind::CfiFormat::kEhFrame;
    std::string body(bytes_of(std::uint32_t{is_eh ? 0 : 0xffffffffU}));
    body += static_cast<char>(cie.version);
    body += cie.augmentation + '\0';
    if (cie.version == 4)
      body += code({8, 0});
    body += code({cie.code_alignment, 0x78, cie.return_register});  // data alignment -8
    if (!cie.augmentation.empty() && cie.augmentation.front() == 'z') {
      const std::string data = static_cast<char>(cie.pointer_encoding) + cie.more_augmentation_data;
      body += static_cast<char>(data.size()) + data;
    }
    cie_offset_ = section_.size();
    add(body + cie.instructions);
    return cie_offset_;
  }

  /// A function that uses the last CIE.
  void fde(std::uint64_t start, std::uint64_t bytes, std::string_view instructions = "") {
    fdes_.emplace_back(start, section_.size());
    const std::uint64_t id_offset = section_.size() + 4;
    const bool is_eh = format_ == unwind::CfiFormat::kEhFrame;
    std::string body(
        bytes_of(static_cast<std::uint32_t>(is_eh ? id_offset - cie_offset_ : cie_offset_)));
    const std::uint64_t here = svma_ + id_offset + 4;
    const bool is_narrow = cie_.pointer_encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4);
    if (is_narrow && !cie_.augmentation.empty()) {
      body += bytes_of(static_cast<std::uint32_t>(start - here));
      body += bytes_of(static_cast<std::uint32_t>(bytes));
    } else {
      body += bytes_of(start);
      body += bytes_of(bytes);
    }
    if (!cie_.augmentation.empty())
      body += '\0';  // no augmentation data
    body += instructions;
    add(body);
  }

  [[nodiscard]] objects::SectionBytes section() const { return {as_bytes(section_), svma_}; }

  /// .eh_frame_hdr, as linkers write it.
  [[nodiscard]] objects::SectionBytes header(std::uint64_t svma) const {
    auto sorted = fdes_;
    std::sort(sorted.begin(), sorted.end());
    std::string text = code(
        {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4});
    text += bytes_of(static_cast<std::uint32_t>(svma_ - svma - 4));
    text += bytes_of(static_cast<std::uint32_t>(sorted.size()));
    for (const auto& [start, offset] : sorted) {
      text += bytes_of(static_cast<std::uint32_t>(start - svma));
      text += bytes_of(static_cast<std::uint32_t>(svma_ + offset - svma));
    }
    return {as_bytes(text), svma};
  }

  static std::vector<std::byte> as_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  void add(const std::string& body) {
    section_ += bytes_of(static_cast<std::uint32_t>(body.size()));
    section_ += body;
  }

  std::uint64_t svma_;
  unwind::CfiFormat format_;
  std::string section_;
  Cie cie_;
  std::size_t cie_offset_ = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> fdes_;
};

}  // namespace pe::testing
