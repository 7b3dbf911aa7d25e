// SPDX-License-Identifier: MIT
#include "stream/script_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/parse_number.h"
#include "base/text.h"
#include "stream/build_records.h"

namespace pe::stream {
namespace {

constexpr std::size_t kMostBytes = 4000;

struct Kind {
  std::string_view mark, runtime;
  std::uint32_t flags;
};
/// In the order of ScriptKind.
constexpr std::array<Kind, kScriptKinds> kKinds = {
    {{"[python]", "Python", kSymbolScript},
     {"[java]", "Java", kSymbolScript},
     {"[java-jit]", "Java", kSymbolJit},
     {"[java-inlined]", "Java", kSymbolJit | kSymbolInlined},
     {"[java-stub]", "Java", kSymbolJit},
     {"[php]", "PHP", kSymbolScript},
     {"[ruby]", "Ruby", kSymbolScript},
     {"[node]", "Node", kSymbolScript},
     {"[node-jit]", "Node", kSymbolJit},
     {"[node-inlined]", "Node", kSymbolJit | kSymbolInlined},
     {"[node-stub]", "Node", kSymbolJit}}};

/// Whether a byte of UTF-8 continues a character.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80; }

bool is_escaped(unsigned char byte) { return byte <= ' ' || byte == '\\' || byte == 0x7f; }

/// Adds the text until `out` has `limit` bytes, without a part of a character.
void add_escaped(std::string& out, std::string_view text, std::size_t limit) {
  constexpr std::size_t kEscapeBytes = 4;
  const std::size_t start = out.size();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t bytes = is_escaped(byte) ? kEscapeBytes : 1;
    if (out.size() + bytes > limit) {
      const bool is_cut = is_inside_character(c);
      while (out.size() > start && is_cut && is_inside_character(out.back()))
        out.pop_back();
      out.resize(out.size() - (is_cut && out.size() > start ? 1 : 0));
      return;
    }
    if (is_escaped(byte))
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
}

std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool may_be_escape = text.front() == '\\' && text.size() >= 4;
    const auto byte =
        may_be_escape ? parse_number<std::uint8_t>(text.substr(1, 3), 8) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : text.front();
    text.remove_prefix(byte ? 4 : 1);
  }
  return out;
}

}  // namespace

std::string_view script_mark(ScriptKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)].mark;
}

std::string_view runtime_name(ScriptKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)].runtime;
}

std::uint32_t script_flags(ScriptKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)].flags;
}

std::string script_path(const ScriptFunction& function) {
  const std::string line = fmt::format(":{}", function.line);
  std::string path = std::string(script_mark(function.kind)) + ' ';
  add_escaped(path, function.name, kMostBytes / 2);
  path += ' ';
  add_escaped(path, function.file, kMostBytes - line.size());
  return path + line;
}

std::optional<ScriptFunction> parse_script_path(std::string_view path) {
  const std::string_view mark = path.substr(0, path.find(' '));
  const auto kind = std::ranges::find(kKinds, mark, &Kind::mark);
  if (kind == kKinds.end() || mark.size() == path.size())
    return std::nullopt;
  path.remove_prefix(mark.size() + 1);
  const auto blank = path.find(' ');
  const auto colon = path.rfind(':');
  if (blank == path.npos || colon == path.npos || colon < blank)
    return std::nullopt;
  const auto line = parse_number<std::uint32_t>(path.substr(colon + 1));
  if (!line)
    return std::nullopt;
  return ScriptFunction{unescaped(path.substr(0, blank)),
                        unescaped(path.substr(blank + 1, colon - blank - 1)), *line,
                        static_cast<ScriptKind>(kind - kKinds.begin())};
}

bool is_script_mapping(const Record& record) {
  if (record.type != PERF_RECORD_MMAP2)
    return false;
  const auto map = parse_mmap(record);
  return map && map->start >= kScriptStart && map->start < kScriptEnd;
}

void build_script_mapping(RecordBuilder& builder, std::uint32_t pid, std::uint32_t number,
                          const ScriptFunction& function) {
  MapsLine map;
  map.start = script_address(number);
  map.end = map.start + kScriptBytes;
  map.readable = map.executable = true;
  build_mapping_head(builder, pid, map);
  builder.add_string(script_path(function));
}

}  // namespace pe::stream
