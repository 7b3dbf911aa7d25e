// Recognises PHP by its file, and the layout of its version.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <string_view>

#include "languages/common/interpreter.h"
#include "languages/php/layout.h"
#include "languages/php/names.h"
#include "languages/registry.h"
#include "objects/image.h"

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

/// Needs the svma of executor_globals, which builds without threads have, and of
/// executor_globals_offset, which the others have.
bool complete_php(const objects::Image& image, std::span<const std::uint64_t> symbols,
                  ScriptBinary& binary) {
  const bool has_threads = symbols[0] == 0 && symbols[1] != 0;
  binary.runtime = has_threads ? symbols[1] : symbols[0];
  if (binary.runtime == 0 || binary.loop.empty())
    return false;
  binary.version = version_in(image) | (has_threads ? kPhpWithThreads : 0);
  return true;
}

/// Returns the layout of a version, or why it is unknown: "PHP 7.4".
std::variant<PhpLayout, std::string> php_layout(std::uint64_t version) {
  if ((version & kPhpWithThreads) != 0)
    return fmt::format("PHP {}.{} with threads", version >> 8U & 0xff, version & 0xff);
  switch (version) {
    case 0x0800:
    case 0x0801:
    case 0x0803:
      return PhpLayout{.current = 488, .file = 144, .first_line = 152};
    case 0x0802:
      return PhpLayout{.current = 488, .file = 152, .first_line = 160};
    case 0x0804:
      return PhpLayout{.current = 488, .file = 168, .first_line = 176};
    case 0x0805:
      return PhpLayout{.current = 512, .file = 168, .first_line = 176};
    default:
      return fmt::format("PHP {}.{}", version >> 8U & 0xff, version & 0xff);
  }
}

std::variant<ScriptLayout, std::string> layout_of_php(Memory& /*memory*/,
                                                      const ScriptBinary& binary,
                                                      std::uint64_t /*bias*/) {
  auto layout = php_layout(binary.version);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = kScriptPhp, .php = std::get<PhpLayout>(layout)};
}

}  // namespace

const Interpreter kPhpInterpreter{
    .number = kScriptPhp,
    .language = &kPhp,
    .kind = stream::ScriptKind::kPhp,
    .loop = "execute_ex",
    .symbols = {"executor_globals", "executor_globals_offset"},
    .complete = complete_php,
    .layout = layout_of_php,
    .read_code = read_php_code,
};

}  // namespace pe::languages
