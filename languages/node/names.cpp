// SPDX-License-Identifier: MIT
#include "languages/node/names.h"

#include <algorithm>
#include <span>

namespace pe::languages {
namespace {

constexpr std::uint32_t kV8Word = 8;
/// The types of functions that have another type than JSFunction follow it: constructors.
constexpr std::uint32_t kFunctionTypes = 24;
constexpr std::size_t kMostV8Scripts = 4096, kMostV8Lines = 8'000'000;

/// The parts of a ScopeInfo that are of interest; a word is 1 if there is no such part.
struct ScopeParts {
  std::uint64_t name = 1, inferred = 1, start = 1;
};

std::optional<ScopeParts> read_scope(V8Heap& heap, std::uint64_t scope) {
  constexpr std::uint32_t kFlags = 8, kTypeMask = 15, kFunctionShift = 12;
  constexpr std::uint32_t kHasSavedClass = 1U << 10U, kHasInferred = 1U << 14U;
  constexpr std::int32_t kMostLocals = 100'000, kMostNamesInside = 75;
  const V8Layout& layout = heap.layout();
  const auto word = heap.field(scope, kFlags);
  const auto locals = V8Heap::small_integer(heap.field(scope, layout.scope_locals).value_or(1));
  if (!word || !locals || *locals < 0 || *locals > kMostLocals)
    return std::nullopt;
  const auto flags = static_cast<std::uint32_t>(layout.has_position_first ? *word : *word >> 32U);
  const std::uint32_t type = flags & kTypeMask;
  const auto count = static_cast<std::uint32_t>(*locals);
  std::uint32_t at = layout.scope_first;
  ScopeParts parts;
  const auto part = [&](std::uint32_t offset) { return heap.field(scope, offset).value_or(1); };
  if (type == layout.function_scope_type + 1)  // a module's, which has a number of variables
    at += kV8Word;
  at += kV8Word * (count + (*locals < kMostNamesInside ? count : 1));
  at += (flags & kHasSavedClass) != 0 ? kV8Word : 0;
  if ((flags >> kFunctionShift & 3U) != 0) {
    parts.name = part(at);
    at += 2 * kV8Word;
  }
  if ((flags & kHasInferred) != 0) {
    parts.inferred = part(at);
    at += kV8Word;
  }
  parts.start = part(layout.has_position_first ? layout.scope_first - 2 * kV8Word : at);
  return parts;
}

/// Modules have addresses: "file:///srv/main.mjs".
std::string path_of(std::string name) {
  constexpr std::string_view kFile = "file://";
  return name.starts_with(kFile) ? name.substr(kFile.size()) : name;
}

}  // namespace

std::optional<V8FunctionFields> read_v8_fields(V8Heap& heap, std::uint64_t shared) {
  const V8Layout& layout = heap.layout();
  if (!heap.has_type(shared, layout.shared_function))
    return std::nullopt;
  const auto name = heap.field(shared, layout.shared_name);
  const auto script = heap.field(shared, layout.shared_script);
  return name && script ? std::optional(V8FunctionFields{*name, *script}) : std::nullopt;
}

std::optional<std::uint64_t> bytecodes_of(V8Heap& heap, std::uint64_t shared) {
  const V8Layout& layout = heap.layout();
  auto data = heap.field(shared, layout.shared_data);
  if (data && heap.has_type(*data, layout.code))
    data = heap.field(*data, layout.code_bytecodes);
  if (data && heap.has_type(*data, layout.interpreter_data))
    data = heap.field(*data, layout.interpreter_bytecodes);
  return data && heap.has_type(*data, layout.bytecode_array) ? data : std::nullopt;
}

std::optional<std::uint64_t> shared_of_function(V8Heap& heap, std::uint64_t function) {
  const V8Layout& layout = heap.layout();
  // Where an object was before it was moved, its new address replaces its map until the memory is
  // used again.
  constexpr int kMostMoves = 2;
  for (int i = 0; i < kMostMoves && V8Heap::is_strong(function); ++i)
    if (const auto moved = heap.field(function, 0); moved && *moved != 0 && *moved % kV8Word == 0)
      function = *moved + 1;
  const auto type = V8Heap::is_strong(function) ? heap.type(function) : std::nullopt;
  if (!type || *type < layout.js_function || *type - layout.js_function >= kFunctionTypes)
    return std::nullopt;
  const auto shared = heap.field(function, layout.function_shared);
  return shared && heap.has_type(*shared, layout.shared_function) ? shared : std::nullopt;
}

bool is_builtin_function(V8Heap& heap, std::uint64_t shared) {
  const auto data = heap.field(shared, heap.layout().shared_data);
  return data && !V8Heap::is_object(*data);
}

std::optional<V8Function> read_v8_function(V8Heap& heap, const V8FunctionFields& fields) {
  const V8Layout& layout = heap.layout();
  V8Function function;
  std::optional<std::string> name;
  if (heap.has_type(fields.name, layout.scope_info)) {
    const auto parts = read_scope(heap, fields.name);
    if (!parts)
      return std::nullopt;
    name = heap.text(parts->name);
    if (!name || name->empty())
      name = heap.text(parts->inferred);
    if (const auto start = V8Heap::small_integer(parts->start); start && *start >= 0)
      function.start = static_cast<std::uint32_t>(*start);
  } else {
    name = heap.text(fields.name);
    if (!name)
      return std::nullopt;
  }
  function.name = name && !name->empty() ? *name : "(anonymous)";
  if (heap.has_type(fields.script, layout.script))
    if (const auto file = heap.field(fields.script, layout.script_name))
      function.file = path_of(heap.text(*file).value_or(std::string()));
  return function;
}

std::uint32_t V8Lines::line(V8Heap& heap, std::uint64_t script, std::uint32_t offset,
                            const MayRead& may_read) {
  const V8Layout& layout = heap.layout();
  if (!heap.has_type(script, layout.script))
    return 0;
  const auto source = heap.field(script, layout.script_source);
  const auto characters = source ? heap.characters(*source) : std::nullopt;
  if (!characters || offset > characters->length)
    return 0;
  if (scripts_.size() >= kMostV8Scripts || lines_ >= kMostV8Lines) {
    scripts_.clear();
    lines_ = 0;
  }
  Script& known = scripts_[script];
  if (known.source != *characters) {
    known = Script();
    known.source = *characters;
    known.kept = KeptBytes(spender_);
  }
  if (known.read < offset && !extend(heap, known, offset, may_read))
    return 0;
  const auto after = std::ranges::upper_bound(known.ends, offset);
  const auto first =
      V8Heap::small_integer(heap.field(script, layout.script_line_offset).value_or(1));
  const std::int64_t line = (after - known.ends.begin()) + 1 + first.value_or(0);
  return line > 0 ? static_cast<std::uint32_t>(line) : 0;
}

/// Reads the script up to `offset`.
bool V8Lines::extend(V8Heap& heap, Script& script, std::uint32_t offset, const MayRead& may_read) {
  constexpr std::uint32_t kChunk = 16'384;
  constexpr std::size_t kPageBytes = 4096;
  const std::uint32_t width = script.source.has_two_bytes ? 2 : 1;
  while (script.read < offset) {
    const std::uint32_t count = std::min(kChunk, script.source.length - script.read);
    chunk_.resize(std::size_t{count} * width);
    if (!may_read(chunk_.size() / kPageBytes + 1) ||
        !heap.memory().read(script.source.avma + std::uint64_t{script.read} * width,
                            std::as_writable_bytes(std::span(chunk_))))
      return false;
    const bool is_after_return = find_ends(script, count);
    if (!keep_ends(script))
      return false;
    script.is_after_return = is_after_return;
    script.read += count;
  }
  return true;
}

/// Finds the lines that end in the chunk of `count` characters after those that were read.  Returns
/// whether its last character is '\r'.
bool V8Lines::find_ends(Script& script, std::uint32_t count) {
  const bool has_two_bytes = script.source.has_two_bytes;
  ends_.clear();
  bool is_after_return = script.is_after_return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t unit =
        has_two_bytes
            ? chunk_[std::size_t{i} * 2] | std::uint32_t{chunk_[std::size_t{i} * 2 + 1]} << 8U
            : chunk_[i];
    const std::uint32_t next = script.read + i + 1;
    if (unit == '\n' && is_after_return && ends_.empty())
      script.ends.back() = next;
    else if (unit == '\n' && is_after_return)
      ends_.back() = next;
    else if (unit == '\n' || unit == '\r' || unit == 0x2028 || unit == 0x2029)
      ends_.push_back(next);
    is_after_return = unit == '\r';
  }
  return is_after_return;
}

/// Returns false if there is no room.
bool V8Lines::keep_ends(Script& script) {
  if (!script.kept.may_add(ends_.size() * sizeof(std::uint32_t)))
    return false;
  script.ends.insert(script.ends.end(), ends_.begin(), ends_.end());
  lines_ += ends_.size();
  return true;
}

}  // namespace pe::languages
