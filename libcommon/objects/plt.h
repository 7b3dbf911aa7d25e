// The stubs through which an x86-64 image calls other images.  Private to elf/.
//
// They have no symbols.  Like objdump -d, we name each after the function whose
// address the slot that it jumps through will hold: "puts@plt".  The jumps are
// decoded, because the order of stubs and relocations differs between linkers.
//
// Source: System V ABI, AMD64 supplement, 5.2 "Procedure Linkage Table" and 13.2 (IBT).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

struct PltStub {
  std::uint64_t svma;
  std::uint32_t bytes;
  std::uint64_t slot_svma;  ///< where it reads its destination
  std::string name;         ///< with "@plt"
};

/// The stubs in .plt, .plt.sec and .plt.got that a relocation names, without any order.
std::vector<PltStub> named_plt_stubs(const Image& image);

}  // namespace pe::objects
