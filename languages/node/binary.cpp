// SPDX-License-Identifier: MIT
#include "languages/node/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "languages/node/embedded.h"
#include "objects/image.h"

namespace pe::languages {
namespace {

using Builtin = V8Binary::Builtin;

struct FoundSymbols {
  std::unordered_map<std::string, std::uint64_t> variables;  ///< svma of v8dbg_*
  std::uint64_t major = 0, minor = 0;                        ///< svma
  bool has_v8 = false;
  std::vector<V8Binary::Range> builtins;
};

/// These builtins have the frames of functions that they start or continue to interpret.
bool is_of_interpreter(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {
      "InterpreterEntryTrampoline",           "InterpreterEntryTrampolineForProfiling",
      "InterpreterEnterAtBytecode",           "InterpreterEnterAtNextBytecode",
      "BaselineOrInterpreterEnterAtBytecode", "BaselineOrInterpreterEnterAtNextBytecode"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// Bytecode handlers are named after bytecodes: "LdaSmiHandler", "LdaSmiWideHandler".  Handlers of
/// other things have the same ending, but a dispatch to them looks the same.
Builtin builtin_of(std::string_view name) {
  if (is_of_interpreter(name))
    return Builtin::kInterpreter;
  return name.ends_with("Handler") ? Builtin::kHandler : Builtin::kOther;
}

FoundSymbols v8_symbols(const objects::Image& image) {
  constexpr std::string_view kVariable = "v8dbg_", kBuiltin = "Builtins_";
  FoundSymbols found;
  objects::for_each_symbol(
      image, [&](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        if (name.starts_with(kVariable))
          found.variables.emplace(name.substr(kVariable.size()), svma);
        else if (name.starts_with(kBuiltin) && bytes > 0 && svma + bytes > svma &&
                 found.builtins.size() < kMostV8Builtins)
          found.builtins.push_back({svma, svma + bytes, builtin_of(name.substr(kBuiltin.size()))});
        else if (name == "_ZN2v88internal7Version6major_E")
          found.major = svma;
        else if (name == "_ZN2v88internal7Version6minor_E")
          found.minor = svma;
        else if (name == "_ZN2v87Isolate10GetCurrentEv")
          found.has_v8 = true;
      });
  std::ranges::sort(found.builtins, {}, &V8Binary::Range::start);
  return found;
}

std::optional<std::uint32_t> int_at(const objects::Image& image, std::uint64_t svma) {
  const auto bytes = svma != 0 ? image.loaded_bytes(svma, sizeof(std::uint32_t)) : std::nullopt;
  std::uint32_t value = 0;
  if (!bytes || bytes->bytes.size() != sizeof value)
    return std::nullopt;
  std::memcpy(&value, bytes->bytes.data(), sizeof value);
  return value;
}

/// Adds what the file has without symbols.
void complete_stripped(const objects::Image& image, FoundSymbols& symbols,
                       std::optional<std::uint32_t>& major, std::optional<std::uint32_t>& minor) {
  const EmbeddedV8 embedded(image);
  if (symbols.builtins.empty())
    for (const auto& [start, end, name] : embedded.builtins())
      symbols.builtins.push_back({start, end, builtin_of(name)});
  if (const auto version = major && minor ? std::nullopt : embedded.version()) {
    major = version->major;
    minor = version->minor;
  }
}

/// Returns what no variable describes.
V8Layout facts_of_v8(std::uint32_t major, std::uint32_t minor) {
  V8Layout facts{};
  facts.major = major;
  facts.minor = minor;
  facts.has_position_first = major >= 13;
  facts.has_position_marks = major >= 14;
  for (const V8Fact& fact : kV8Facts)
    facts.*fact.field = fact.values.at(std::clamp(major, 10U, 13U) - 10);
  return facts;
}

bool is_tested(std::uint32_t major, std::uint32_t minor) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 6> kVersions = {
      {{10, 2}, {11, 3}, {12, 4}, {13, 6}, {14, 1}, {14, 6}}};
  return std::ranges::find(kVersions, std::pair(major, minor)) != kVersions.end();
}

/// A field of V8Layout, and the variables that may describe it.
struct Described {
  using Field = std::uint32_t V8Layout::*;
  Field field;
  std::array<std::string_view, 3> names;
};

constexpr std::array<Described, 16> kDescribed = {{
    {&V8Layout::js_function, {"type_JSFunction__JS_FUNCTION_TYPE"}},
    {&V8Layout::shared_function, {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"}},
    {&V8Layout::bytecode_array, {"type_BytecodeArray__BYTECODE_ARRAY_TYPE"}},
    {&V8Layout::code, {"type_Code__CODE_TYPE"}},
    {&V8Layout::scope_info, {"type_ScopeInfo__SCOPE_INFO_TYPE"}},
    {&V8Layout::script, {"type_Script__SCRIPT_TYPE"}},
    {&V8Layout::interpreter_data, {"type_InterpreterData__INTERPRETER_DATA_TYPE"}},
    {&V8Layout::map_type, {"class_Map__instance_type__uint16_t"}},
    {&V8Layout::function_shared, {"class_JSFunction__shared__SharedFunctionInfo"}},
    {&V8Layout::shared_name,
     {"class_SharedFunctionInfo__name_or_scope_info__Object",
      "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
      "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"}},
    {&V8Layout::shared_script,
     {"class_SharedFunctionInfo__script_or_debug_info__HeapObject",
      "class_SharedFunctionInfo__script__Tagged_HeapObject_"}},
    {&V8Layout::script_source, {"class_Script__source__Object"}},
    {&V8Layout::script_name, {"class_Script__name__Object"}},
    {&V8Layout::bytecodes, {"class_BytecodeArray__data__uintptr_t"}},
    {&V8Layout::kind_baseline, {"CodeKindBaseline"}},
    // In the first version its instructions are in Code itself.
    {&V8Layout::instruction_stream,
     {"type_InstructionStream__INSTRUCTION_STREAM_TYPE", "type_Code__CODE_TYPE"}},
}};

}  // namespace

std::optional<V8Layout> v8_layout(std::uint32_t major, std::uint32_t minor,
                                  const V8Value& value_of) {
  if (!is_tested(major, minor))
    return std::nullopt;
  V8Layout layout = facts_of_v8(major, minor);
  for (const Described& described : kDescribed) {
    std::optional<std::uint32_t> value;
    for (const std::string_view name : described.names)
      if (!value && !name.empty())
        value = value_of(name);
    if (!value)
      return std::nullopt;
    layout.*described.field = *value;
  }
  layout.function_wrapper =
      value_of("type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE").value_or(0);
  return layout;
}

std::optional<Builtin> V8Binary::builtin_at(std::uint64_t svma) const noexcept {
  const auto after = std::ranges::upper_bound(builtins, svma, {}, &Range::start);
  if (after == builtins.begin() || svma >= (after - 1)->end)
    return std::nullopt;
  return (after - 1)->builtin;
}

std::optional<Builtin> V8Binary::builtin_of_return(std::uint64_t svma) const noexcept {
  const auto found = std::ranges::lower_bound(builtins, svma, {}, &Range::start);
  const bool is_start = found != builtins.end() && found->start == svma;
  return is_start && found->builtin == Builtin::kInterpreter ? Builtin::kInterpreter
                                                             : builtin_at(svma - 1);
}

std::optional<V8Binary> find_v8(const objects::Image& image) {
  if (!image.is_x86_64())
    return std::nullopt;
  FoundSymbols symbols = v8_symbols(image);
  if (!symbols.has_v8 && symbols.variables.empty())
    return std::nullopt;
  V8Binary binary;
  auto major = int_at(image, symbols.major);
  auto minor = int_at(image, symbols.minor);
  if (symbols.builtins.empty() || !major || !minor)
    complete_stripped(image, symbols, major, minor);
  binary.builtins = std::move(symbols.builtins);
  binary.segments = {image.segments().begin(), image.segments().end()};
  if (binary.builtins.empty())
    binary.unknown = "a stripped Node";
  else if (!major || !minor || symbols.variables.empty())
    binary.unknown = "a Node without descriptions of its structures";
  else if (!is_tested(*major, *minor))
    binary.unknown = fmt::format("a Node with V8 {}.{}", *major, *minor);
  else
    binary.layout = v8_layout(*major, *minor, [&](std::string_view name) {
      const auto found = symbols.variables.find(std::string(name));
      return found != symbols.variables.end() ? int_at(image, found->second) : std::nullopt;
    });
  if (!binary.layout && binary.unknown.empty())
    binary.unknown = fmt::format("a Node with an unusual V8 {}.{}", *major, *minor);
  return binary;
}

}  // namespace pe::languages
