// Recognises a CPython interpreter by its file: a program or a shared library.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "objects/image.h"
#include "runtimes/python_layout.h"

namespace pe::runtimes {

/// Addresses of a file with an interpreter; all are svma.
struct PythonBinary {
  struct Range {
    std::uint64_t start = 0, end = 0;
  };
  std::uint64_t runtime = 0;             ///< _PyRuntime
  std::optional<std::uint64_t> version;  ///< Py_Version, which Python has since 3.11
  std::vector<Range> loop;               ///< the code of _PyEval_EvalFrameDefault
};

/// Returns nullopt if the file has no interpreter, or is not for x86-64.  `may_be_other`: the file
/// probably has none, so large symbol tables are not read.
std::optional<PythonBinary> find_python(const objects::Image& image, bool may_be_other = false);

/// Returns the layout of the interpreter in the file, or why it is unknown, as python_layout().
std::variant<PythonLayout, std::string> layout_in_file(const objects::Image& image,
                                                       const PythonBinary& binary);

}  // namespace pe::runtimes
