// Code of V8 in a program's file: its builtins.
//
// They have no call frame information.  V8 maps that part of the file a second time, near the code
// that it makes at run time.
//
// Source: V8, src/snapshot/embedded/embedded-file-writer.cc.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "objects/image.h"

namespace pe::objects {

/// A range of svma.
struct EmbeddedCode {
  std::uint64_t start = 0, end = 0;
};
/// Returns an empty range if the file has no such code.  Reads all symbols.
EmbeddedCode find_embedded_code(const Image& image);

}  // namespace pe::objects
