// Finds the stubs through which an x86-64 image calls other images.  Private to objects/.
//
// Stubs have no symbols.  Each jumps through a slot that holds the address of a function.  Like
// objdump -d, we name the stub after that function: "puts@plt".  The jumps are
// decoded because the order of stubs and relocations differs between linkers.
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
  std::uint64_t slot_svma;  ///< the slot that holds its destination
  std::string name;         ///< with "@plt"
};

/// Returns the stubs in .plt, .plt.sec and .plt.got that a relocation names, in no particular
/// order.
std::vector<PltStub> named_plt_stubs(const Image& image);

}  // namespace pe::objects
