// SPDX-License-Identifier: MIT
#include "stackfold/frame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/characters.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/utf8.h"
#include "folded/facts.h"
#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::names {
namespace {

constexpr std::string_view kHashStart = "::h";
constexpr std::size_t kHashDigits = 16;

struct Escape {
  std::string_view code, text;
};
constexpr Escape kEscapes[] = {
    {"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"}, {"$GT$", ">"},
    {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","},  {"..", "::"},
};

std::string_view without_llvm_suffix(std::string_view name) {
  const auto suffix = name.ends_with(')') ? name.rfind(" (.llvm.") : kNone;
  return name.substr(0, suffix);
}

/// Decodes "$u20$" at the start of `text`; only printable ASCII characters have this escape.
std::optional<char> coded_character(std::string_view text) {
  const auto end = text.find('$', 1);
  if (!text.starts_with("$u") || end == kNone)
    return std::nullopt;
  const auto code = parse_number<std::uint32_t>(text.substr(2, end - 2), 16);
  return code && *code >= ' ' && *code <= '~' ? std::optional(static_cast<char>(*code))
                                              : std::nullopt;
}

/// Decodes one character or escape at the start of `text` and moves it to `out`.
void take_character(std::string_view& text, std::string& out) {
  for (const auto& [code, meaning] : kEscapes) {
    if (text.starts_with(code)) {
      out += meaning;
      text.remove_prefix(code.size());
      return;
    }
  }
  const auto coded = coded_character(text);
  out += coded.value_or(text[0]);
  text.remove_prefix(coded ? text.find('$', 1) + 1 : 1);
}

}  // namespace

bool is_half_mangled(std::string_view name) {
  name = without_llvm_suffix(name);
  constexpr std::size_t kHashBytes = kHashStart.size() + kHashDigits;
  if (name.size() <= kHashBytes)
    return false;
  const std::string_view hash = name.substr(name.size() - kHashBytes);
  return hash.starts_with(kHashStart) &&
         std::all_of(hash.begin() + kHashStart.size(), hash.end(), is_hex);
}

std::string demangle_half_mangled(std::string_view name) {
  std::string out;
  if (!is_half_mangled(name))
    return out.append(name);
  name = without_llvm_suffix(name);
  std::string_view left = name.substr(0, name.size() - kHashStart.size() - kHashDigits);
  while (!left.empty()) {
    const bool begins_element = out.empty() || out.ends_with("::") || out.ends_with('`');
    if (begins_element && left.starts_with("_$"))
      left.remove_prefix(1);  // the '_' only makes the element start like an identifier
    take_character(left, out);
  }
  return out;
}

}  // namespace pe::names

namespace pe::fold {

namespace {

/// Replaces characters beyond ASCII that control a terminal or deceive a reader (base/text.h).
/// A byte that is not UTF-8 stays, unless it is such a character in an older encoding.
std::string without_unsafe_characters(std::string_view text) {
  constexpr unsigned char kFirstAfterControls = 0xa0;
  std::string out;
  while (!text.empty()) {
    const CodePoint c = take_code_point(text);
    const bool is_safe = c.is_valid ? !is_control(c.value) && !is_deceiving(c.value)
                                    : static_cast<unsigned char>(c.bytes[0]) >= kFirstAfterControls;
    out += is_safe ? c.bytes : "?";
  }
  return out;
}

}  // namespace

std::string clean_name(std::string_view name) {
  std::string text = names::demangle_half_mangled(name);
  bool is_ascii = true;
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ';')
      c = ':';
    else if (byte < ' ' || byte == 0x7f)
      c = '?';
    is_ascii = is_ascii && byte < 0x80;
  }
  if (!is_ascii)
    text = without_unsafe_characters(text);
  text.erase(text.find_last_not_of(' ') + 1);
  if (folded::parse_time_root(text))  // only --every writes such frames
    text.insert(0, "_");
  return text.empty() ? "[unknown]" : text;
}

std::string frame_text(std::string_view name, std::uint32_t flags, const Marks& marks) {
  std::string text = clean_name(name);
  if ((flags & stream::kSymbolInlined) != 0)
    text += marks.inlined ? "_[i]" : "";
  else if ((flags & stream::kSymbolKernel) != 0)
    text += marks.kernel ? "_[k]" : "";
  else if ((flags & stream::kSymbolJit) != 0)
    text += marks.jit ? "_[j]" : "";
  else if ((flags & stream::kSymbolScript) != 0)
    text += marks.script ? "_[s]" : "";
  else if ((flags & stream::kSymbolTailCall) != 0 && marks.tail_call)
    text += "_[t]";
  else if ((flags & stream::kSymbolLibrary) != 0)
    text += marks.library ? "_[l]" : "";
  return text;
}

std::string module_text(std::string_view module, bool is_jit) {
  if (is_jit)
    return "[jit]`";
  if (module.ends_with("vmlinux") || module == "[kernel.kallsyms]" || module == "[kernel]")
    return "[kernel]`";
  const bool is_named = module.starts_with('[') && module != "[unknown]";
  if (!is_named && (!module.starts_with('/') || module.starts_with("//")))
    return {};
  return clean_name(file_name(module)) + '`';
}

std::string source_text(std::string_view file, std::uint32_t line) {
  return ":" + clean_name(fmt::format("{}:{}", file_name(file), line));
}

bool looks_like_library(std::string_view path) {
  const std::string_view name = file_name(path);
  return name.ends_with(".so") || name.find(".so.") != std::string_view::npos;
}

bool is_kernel_module(std::string_view module) {
  if (module.ends_with("vmlinux"))
    return true;
  const std::string_view name = file_name(module);
  if (name.ends_with(".ko") || name.find(".ko.") != std::string_view::npos)
    return true;
  constexpr std::string_view kOfTheProcess[] = {"[vdso]", "[vsyscall]", "[unknown]",
                                                "[heap]", "[stack]",    "[uprobes]"};
  return module.starts_with('[') && !module.starts_with("[anon") &&
         std::find(std::begin(kOfTheProcess), std::end(kOfTheProcess), module) ==
             std::end(kOfTheProcess);
}

std::uint32_t module_flags(std::string_view module) {
  if (is_kernel_module(module))
    return stream::kSymbolKernel;
  return module == "[vdso]" || looks_like_library(module) ? stream::kSymbolLibrary : 0U;
}

std::string unnamed_text(std::string_view module, std::uint64_t file_offset) {
  return module.empty() ? "[unknown]" : fmt::format("{}+{:#x}", file_name(module), file_offset);
}

std::string root_text(std::string_view comm, std::uint32_t pid, std::uint32_t tid, RootName root) {
  std::string text = clean_name(comm);
  std::replace(text.begin(), text.end(), ' ', '_');
  if (root == RootName::kCommPid)
    text += fmt::format("-{}", stream::id_text(pid));
  else if (root == RootName::kCommPidTid)
    text += fmt::format("-{}/{}", stream::id_text(pid), stream::id_text(tid));
  return text;
}

}  // namespace pe::fold
