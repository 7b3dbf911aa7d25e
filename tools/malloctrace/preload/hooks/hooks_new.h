// operator new and delete.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::malloctrace {

/// Finds whose operator new would be called without us.  To be called when the library starts.
void prepare_new() noexcept;

}  // namespace pe::malloctrace
