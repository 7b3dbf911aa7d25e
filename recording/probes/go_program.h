// Is an image written in Go?
//
// A return probe replaces the return address on the stack.  Go's runtime moves stacks and checks
// their return addresses: it ends the program ("unexpected return pc").  So no return probe may be
// set in one.
// SPDX-License-Identifier: MIT
#pragma once

#include "objects/image.h"

namespace pe::objects {

/// Go's linker writes these sections even into stripped programs (cmd/link/internal/ld/elf.go,
/// buildinfo.go).
inline bool is_go_program(const Image& image) noexcept {
  for (const char* name :
       {".note.go.buildid", ".go.buildinfo", ".gopclntab", ".data.rel.ro.gopclntab"})
    if (image.section(name) != nullptr)
      return true;
  return false;
}

}  // namespace pe::objects
