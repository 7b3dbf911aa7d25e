// Call frame information of images that the dynamic linker has loaded into this process, read
// where it stands: for walking our own stack.  Never allocates, never throws.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/cfi/cfi_entries.h"

namespace pe::unwind {

/// An image in memory.  Addresses are avma, which stand for svma here.
struct LoadedImage {
  std::uint64_t start, end;    ///< all of it; what lies between need not be mapped
  std::uint64_t frame_header;  ///< its .eh_frame_hdr, which lies inside
};

struct LoadedFde {
  Fde fde;
  std::uint64_t data_avma;  ///< what DW_EH_PE_datarel counts from
};

/// The entry that covers `avma`; nullopt if there is none, or the image has no search table.
/// Trusts that the sections are mapped as their headers say.
std::optional<LoadedFde> find_loaded_fde(const LoadedImage& image, std::uint64_t avma) noexcept;

}  // namespace pe::unwind
