// SPDX-License-Identifier: MIT
#include "languages/php/binary.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "languages/common/version_text.h"
#include "languages/php/layout.h"
#include "languages/php/walk.h"

namespace pe::languages {
namespace {

/// Returns the version by the header that PHP sends; 0 if the file does not have it.
std::uint64_t version_in(const objects::Image& image) {
  constexpr std::string_view kHeader = "X-Powered-By: PHP/";
  const auto section = image.section_bytes(".rodata");
  if (!section)
    return 0;
  const auto bytes = section->bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::size_t kPiece = std::size_t{64} << 10, kTurnsOfPiece = 16;
  std::size_t at = std::string_view::npos;
  for (std::size_t piece = 0; at == std::string_view::npos && piece < text.size();
       piece += kPiece) {
    if (!image.may_go_on(kTurnsOfPiece))
      return 0;
    const auto found = text.substr(piece, kPiece + kHeader.size() - 1).find(kHeader);
    at = found == std::string_view::npos ? found : piece + found;
  }
  if (at == std::string_view::npos)
    return 0;
  const auto version = parse_version_text(text.substr(at + kHeader.size()));
  return version ? std::uint64_t{version->major} << 8U | version->minor : 0;
}

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

bool complete_php(const objects::Image& image, std::span<const std::uint64_t> symbols,
                  ScriptBinary& binary) {
  const bool has_threads = symbols[0] == 0 && symbols[1] != 0;
  binary.runtime = has_threads ? symbols[1] : symbols[0];
  if (binary.runtime == 0 || binary.loop.empty())
    return false;
  binary.version = version_in(image) | (has_threads ? kPhpWithThreads : 0);
  return true;
}

std::variant<ScriptLayout, std::string> layout_of_php(Memory& /*memory*/,
                                                      const ScriptBinary& binary,
                                                      std::uint64_t /*bias*/) {
  auto layout = php_layout(binary.version);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = ScriptLanguage::kPhp, .php = std::get<PhpLayout>(layout)};
}

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
