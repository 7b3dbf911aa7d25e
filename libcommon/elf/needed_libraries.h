// The libraries that a program or library asks the dynamic linker for: DT_NEEDED.
//
// Source: the System V gABI, chapter 5, "Dynamic Section".
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "elf/image.h"

namespace pe::elf {

/// Their names as they stand there, such as "libc.so.6", in that order.  Empty if there are none,
/// or none can be read: of another than a 64-bit image, or one without section headers.
std::vector<std::string> needed_libraries(const Image& image);

}  // namespace pe::elf
