// SPDX-License-Identifier: MIT
#include "languages/php/names.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/text.h"
#include "base/utf8.h"
#include "languages/php/layout.h"
#include "languages/php/walk.h"

namespace pe::languages {
namespace {

/// Returns the text of a zend_string up to a NUL; nullopt if it is unreadable.  The names of
/// anonymous classes have a NUL.  U+FFFD replaces each byte that is not UTF-8.
std::optional<std::string> read_php_text(Memory& memory, std::uint64_t avma, std::size_t most) {
  const auto length = memory.value<std::uint64_t>(avma + kPhpTextLength);
  if (!length || *length == 0)
    return std::nullopt;
  std::string text(std::min<std::uint64_t>(*length, most), '\0');
  if (!memory.read(avma + kPhpTextData, std::as_writable_bytes(std::span(text))))
    return std::nullopt;
  return made_valid_utf8(text.substr(0, text.find('\0')));
}

/// Returns the name of a class with "::"; nullopt if it is unreadable.
std::optional<std::string> read_class(Memory& memory, std::uint64_t scope) {
  const auto name = memory.pointer(scope + kPhpClassName);
  auto text = name ? read_php_text(memory, *name, kMostNameCharacters / 2) : std::nullopt;
  return text ? std::optional(*text + "::") : std::nullopt;
}

}  // namespace

std::optional<ScriptCode> read_php_code(Memory& memory, const ScriptLayout& layout,
                                        const ScriptFrame& frame) {
  const auto function = read_php_function(memory, layout.php, frame.code);
  if (!function || php_mark(*function) != frame.mark)
    return std::nullopt;
  ScriptCode code{.function = {.name = {},
                               .file = {},
                               .line = function->first_line,
                               .kind = stream::ScriptKind::kPhp},
                  .lines = {},
                  .has_line_places = true};
  if (function->file != 0)
    code.function.file = read_php_text(memory, function->file, kMostFileCharacters).value_or("");
  if (function->name != 0) {
    const auto own = read_php_text(memory, function->name, kMostNameCharacters);
    const auto scope = function->scope != 0 ? read_class(memory, function->scope) : "";
    if (!own || !scope)
      return std::nullopt;
    code.function.name = *scope + *own;
  } else {
    code.function.name = frame.ends_call ? "{main}" : std::string(file_name(code.function.file));
  }
  return code;
}

}  // namespace pe::languages
