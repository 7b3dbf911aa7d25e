// SPDX-License-Identifier: MIT
#include "runtimes/python/binary.h"

#include "runtimes/python/layout.h"

namespace pe::runtimes {

bool complete_python(const objects::Image& image, std::span<const std::uint64_t> symbols,
                     ScriptBinary& binary) {
  binary.runtime = symbols[0];
  if (binary.runtime == 0 || binary.loop.empty())
    return false;
  if (symbols[1] != 0)
    binary.version = loaded_memory(image).pointer(symbols[1]).value_or(0);
  return true;
}

std::variant<ScriptLayout, std::string> layout_of_python(Memory& memory, const ScriptBinary& binary,
                                                         std::uint64_t bias) {
  auto layout = python_layout(memory, binary.version, binary.runtime + bias);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = ScriptLanguage::kPython,
                      .python = std::get<PythonLayout>(layout)};
}

}  // namespace pe::runtimes
