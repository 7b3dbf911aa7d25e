// SPDX-License-Identifier: MIT
#include "runtimes/scripts/interpreters.h"

#include "runtimes/python/binary.h"
#include "runtimes/python/code.h"

namespace pe::runtimes {
namespace {

using stream::ScriptKind;

/// In the order of ScriptLanguage.
constexpr std::array kInterpreters = {Interpreter{
    .language = ScriptLanguage::kPython,
    .kind = ScriptKind::kPython,
    .file = "python",
    .library = "libpython",
    .versions = "Python 3.11 to 3.14",
    .unreadable = "[python: unreadable]",
    .loop = "_PyEval_EvalFrameDefault",
    .symbols = {"_PyRuntime", "Py_Version"},
    .complete = complete_python,
    .layout = layout_of_python,
    .read_code = read_python_code,
}};

}  // namespace

std::span<const Interpreter> interpreters() noexcept { return kInterpreters; }

const Interpreter& interpreter_of(ScriptLanguage language) noexcept {
  return kInterpreters[static_cast<std::size_t>(language)];
}

}  // namespace pe::runtimes
