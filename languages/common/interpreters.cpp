// SPDX-License-Identifier: MIT
#include "languages/common/interpreters.h"

#include "languages/php/binary.h"
#include "languages/python/binary.h"
#include "languages/python/code.h"
#include "languages/ruby/binary.h"
#include "languages/ruby/code.h"

namespace pe::languages {
namespace {

using stream::ScriptKind;

/// In the order of ScriptLanguage.
constexpr std::array kInterpreters = {
    Interpreter{
        .language = ScriptLanguage::kPython,
        .kind = ScriptKind::kPython,
        .file = "python",
        .library = "libpython",
        .versions = "Python 3.11 to 3.14",
        .unreadable = "[python: unreadable]",
        .loop = "_PyEval_EvalFrameDefault",
        .symbols = {"_PyRuntime", "Py_Version", "PyEval_EvalFrameEx"},
        .complete = complete_python,
        .layout = layout_of_python,
        .read_code = read_python_code,
    },
    Interpreter{
        .language = ScriptLanguage::kPhp,
        .kind = ScriptKind::kPhp,
        .file = "php",
        .library = "libphp",
        .versions = "PHP 8.0 to 8.4 without threads",
        .unreadable = "[php: unreadable]",
        .loop = "execute_ex",
        .symbols = {"executor_globals", "executor_globals_offset"},
        .complete = complete_php,
        .layout = layout_of_php,
        .read_code = read_php_code,
    },
    Interpreter{
        .language = ScriptLanguage::kRuby,
        .kind = ScriptKind::kRuby,
        .file = "ruby",
        .library = "libruby",
        .versions = "Ruby 3.0 to 3.4",
        .unreadable = "[ruby: unreadable]",
        .loop = "vm_exec_core",
        .loop_addresses = kLeastRubyInstructions,
        .symbols = {"ruby_api_version", "ruby_current_vm_ptr", "ruby_vm_at_exit"},
        .complete = complete_ruby,
        .layout = layout_of_ruby,
        .read_code = read_ruby_code,
    }};

}  // namespace

std::span<const Interpreter> interpreters() noexcept { return kInterpreters; }

const Interpreter& interpreter_of(ScriptLanguage language) noexcept {
  return kInterpreters[static_cast<std::size_t>(language)];
}

}  // namespace pe::languages
