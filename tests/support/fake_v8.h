// The memory of a process that runs V8, made by hand.  Its types have other numbers than those of
// any real one: only its variables describe them.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "languages/node/process.h"

namespace pe::testing {

class FakeV8 {
 public:
  static constexpr std::uint64_t kBase = 0x10000, kCode = kBase + 0x4000, kCodeBytes = 0x2000;
  static constexpr std::uint64_t kWord = 8, kObjectBytes = 256;

  explicit FakeV8(std::uint32_t major = 11, std::uint32_t minor = 3)
      : layout_(layout(major, minor)), bytes_(kCode + kCodeBytes - kBase) {
    meta_ = room(kObjectBytes) + 1;
    for (const std::uint32_t type :
         {layout_.js_function, layout_.shared_function, layout_.bytecode_array, layout_.code,
          layout_.instruction_stream, layout_.scope_info, layout_.script, layout_.interpreter_data,
          layout_.function_wrapper, kOneByte, kTwoByte, kCons, kSliced, kThin, kArray})
      if (!maps_.contains(type))
        maps_[type] = map(type);
  }

  /// The layout of a version with numbers of our own.
  static languages::V8Layout layout(std::uint32_t major, std::uint32_t minor) {
    const auto value = [major](std::string_view name) -> std::optional<std::uint32_t> {
      static const std::map<std::string_view, std::uint32_t> kValues = {
          {"type_JSFunction__JS_FUNCTION_TYPE", 2000},
          {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 300},
          {"type_BytecodeArray__BYTECODE_ARRAY_TYPE", 301},
          {"type_Code__CODE_TYPE", 302},
          {"type_ScopeInfo__SCOPE_INFO_TYPE", 303},
          {"type_Script__SCRIPT_TYPE", 304},
          {"type_InterpreterData__INTERPRETER_DATA_TYPE", 305},
          {"class_Map__instance_type__uint16_t", 12},
          {"class_JSFunction__shared__SharedFunctionInfo", 32},
          {"class_SharedFunctionInfo__name_or_scope_info__Object", 24},
          {"class_SharedFunctionInfo__script__Tagged_HeapObject_", 40},
          {"class_Script__source__Object", 8},
          {"class_Script__name__Object", 16},
          {"class_BytecodeArray__data__uintptr_t", 56},
          {"CodeKindBaseline", 10}};
      if (major > 10 && name == "type_InstructionStream__INSTRUCTION_STREAM_TYPE")
        return 307;
      if (major > 12 && name == "type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE")
        return 308;
      const auto found = kValues.find(name);
      return found != kValues.end() ? std::optional(found->second) : std::nullopt;
    };
    return languages::v8_layout(major, minor, value).value();
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  static std::size_t read(std::span<const std::byte> memory, std::uint64_t avma,
                          std::span<std::byte> into) {
    if (avma < kBase || avma - kBase >= memory.size())
      return 0;
    std::ranges::fill(into, std::byte{0});  // rounded up to pages, as memory is
    const std::size_t at = avma - kBase;
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(at),
                std::min(into.size(), memory.size() - at), into.begin());
    return into.size();
  }
  /// The FakeV8 must outlive it.
  [[nodiscard]] languages::V8Process open() const {
    return {
        [this](std::uint64_t avma, std::span<std::byte> into) { return read(bytes_, avma, into); },
        layout_};
  }
  [[nodiscard]] const languages::V8Layout& layout() const noexcept { return layout_; }

  template <typename T>
  void put(std::uint64_t avma, T value) {
    std::memcpy(bytes_.data() + (avma - kBase), &value, sizeof value);
  }
  void put_text(std::uint64_t avma, std::string_view text) {
    // An empty view may have no data, which memcpy() refuses.
    std::ranges::copy(std::as_bytes(std::span(text)),
                      bytes_.begin() + static_cast<std::ptrdiff_t>(avma - kBase));
  }
  /// Sets a field of an object.
  template <typename T>
  void set(std::uint64_t object, std::uint32_t offset, T value) {
    put((object & ~std::uint64_t{3}) + offset, value);
  }
  static std::uint64_t small(std::int32_t value) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) << 32U;
  }

  std::uint64_t room(std::uint64_t bytes) {
    const std::uint64_t at = next_;
    next_ += (bytes + 15) / 16 * 16;
    return at;
  }
  /// Returns the word of a new object of a type.
  std::uint64_t object(std::uint32_t type, std::uint64_t bytes = kObjectBytes) {
    const std::uint64_t word = room(bytes) + 1;
    set(word, 0, maps_.at(type));
    return word;
  }

  std::uint64_t text(std::string_view content) {
    const std::uint64_t word = object(kOneByte, 16 + content.size());
    set(word, 12, static_cast<std::uint32_t>(content.size()));
    put_text(word - 1 + 16, content);
    return word;
  }
  std::uint64_t wide_text(std::u16string_view content) {
    const std::uint64_t word = object(kTwoByte, 16 + 2 * content.size());
    set(word, 12, static_cast<std::uint32_t>(content.size()));
    for (std::size_t i = 0; i < content.size(); ++i)
      put(word - 1 + 16 + 2 * i, static_cast<std::uint16_t>(content[i]));
    return word;
  }
  std::uint64_t joined_text(std::uint64_t first, std::uint64_t second, std::uint32_t length) {
    const std::uint64_t word = object(kCons, 32);
    set(word, 12, length);
    set(word, 16, first);
    set(word, 24, second);
    return word;
  }
  std::uint64_t slice(std::uint64_t parent, std::int32_t from, std::uint32_t length) {
    const std::uint64_t word = object(kSliced, 32);
    set(word, 12, length);
    set(word, 16, parent);
    set(word, 24, small(from));
    return word;
  }
  std::uint64_t thin(std::uint64_t actual, std::uint32_t length) {
    const std::uint64_t word = object(kThin, 32);
    set(word, 12, length);
    set(word, 16, actual);
    return word;
  }
  std::uint64_t byte_array(std::string_view content) {
    const std::uint64_t word = object(kArray, 16 + content.size());
    set(word, 8, small(static_cast<std::int32_t>(content.size())));
    put_text(word - 1 + 16, content);
    return word;
  }
  std::uint64_t array(const std::vector<std::uint64_t>& elements) {
    const std::uint64_t word = object(kArray, 16 + kWord * elements.size());
    set(word, 8, small(static_cast<std::int32_t>(elements.size())));
    for (std::size_t i = 0; i < elements.size(); ++i)
      put(word - 1 + 16 + kWord * i, elements[i]);
    return word;
  }

  std::uint64_t script(std::uint64_t name, std::uint64_t source) {
    const std::uint64_t word = object(layout_.script);
    set(word, layout_.script_name, name);
    set(word, layout_.script_source, source);
    return word;
  }

  /// A function, with a BytecodeArray whose table of positions is `positions`.
  struct Function {
    std::uint64_t function, shared, bytecodes;
  };
  Function function(std::uint64_t name, std::uint64_t inferred, std::uint64_t script_word,
                    std::int32_t start, std::string_view positions = "") {
    constexpr std::uint32_t kLocals = 2, kHasName = 3U << 12U, kHasInferred = 1U << 14U;
    const std::uint64_t scope = object(layout_.scope_info);
    const std::uint64_t flags =
        layout_.function_scope_type | kHasInferred | (name != 0 ? kHasName : 0);
    set(scope, 8, layout_.has_position_first ? flags : flags << 32U);
    set(scope, layout_.scope_locals, small(kLocals));
    std::uint32_t at = layout_.scope_first + 2 * kLocals * static_cast<std::uint32_t>(kWord);
    if (name != 0) {
      set(scope, at, name);
      at += 16;
    }
    set(scope, at, inferred);
    set(scope, layout_.has_position_first ? layout_.scope_first - 16 : at + 8, small(start));
    Function made{.function = object(layout_.js_function),
                  .shared = object(layout_.shared_function),
                  .bytecodes = object(layout_.bytecode_array)};
    set(made.shared, layout_.shared_data, made.bytecodes);
    set(made.shared, layout_.shared_name, scope);
    set(made.shared, layout_.shared_script, script_word);
    set(made.function, layout_.function_shared, made.shared);
    if (!positions.empty())
      set(made.bytecodes, layout_.bytecode_positions, byte_array(positions));
    return made;
  }

  /// Code at a place that is a multiple of kObjectBytes from kCode; returns its first instruction.
  std::uint64_t code(std::uint64_t place, std::uint32_t kind, std::uint64_t data,
                     std::uint64_t positions, std::uint32_t bytes = 128) {
    const std::uint64_t start = kCode + place;
    const std::uint64_t stream = start - layout_.header_bytes + 1;
    std::uint64_t word = stream;
    set(stream, 0, maps_.at(layout_.instruction_stream));
    if (layout_.code_start != 0) {
      word = object(layout_.code);
      set(stream, layout_.stream_code, word);
      set(word, layout_.code_start, start);
    }
    set(word, layout_.code_deopt_data, data);
    set(word, layout_.code_positions, positions);
    set(word, layout_.code_flags, kind);
    set(word, layout_.code_bytes, bytes);
    last_code_ = word;
    return start;
  }
  [[nodiscard]] std::uint64_t last_code() const noexcept { return last_code_; }

  /// The call of a piece of code, with a deoptimization entry that starts at an offset of the
  /// translations.
  struct Call {
    std::uint8_t returns_to, replaced_by;
    std::int32_t translation;
  };
  /// The calls of a piece of code.
  struct Calls {
    std::vector<Call> calls;
    std::string_view translations;
  };
  /// Writes the table of calls that follows code, after one call that is not described.
  void calls_after(std::uint64_t end, bool is_maglev, const Calls& calls) {
    constexpr std::uint32_t kSizes = 1U | 1U << 1U | 1U << 4U | 1U << 7U;  // one byte each
    put(end + 4, static_cast<std::uint32_t>(calls.calls.size() + 1));
    put(end + 8, kSizes);
    std::uint64_t at = end + (is_maglev ? 16 : 12);
    const auto add = [&](std::uint8_t returns_to, std::size_t number, std::uint8_t replaced_by) {
      for (const std::size_t byte : {std::size_t{returns_to}, number, std::size_t{replaced_by}})
        put(at++, static_cast<std::uint8_t>(byte));
      at += is_maglev ? 2 : 1;
    };
    add(5, 0, 0);
    for (std::size_t i = 0; i < calls.calls.size(); ++i)
      add(calls.calls[i].returns_to, i + 1,
          static_cast<std::uint8_t>(calls.calls[i].replaced_by + 1));
  }

  /// Deoptimization data of a function, into which `inlined` were inlined.
  std::uint64_t deopt_data(std::uint64_t shared, const std::vector<std::uint64_t>& inlined,
                           std::string_view inlinings, std::int32_t exits = 100,
                           const Calls& calls = {}) {
    std::vector<std::uint64_t> elements(12, small(0));
    for (const Call& call : calls.calls)
      for (const std::int32_t value : {0, call.translation, 0})
        elements.push_back(small(value));
    elements[layout_.deopt_translations] = byte_array(calls.translations);
    if (layout_.function_wrapper != 0) {
      const std::uint64_t wrapper = object(layout_.function_wrapper);
      set(wrapper, 8, shared);
      shared = wrapper;
    }
    elements[layout_.deopt_function] = shared;
    elements[layout_.deopt_literals] = array(inlined);
    elements[layout_.deopt_inlining] = byte_array(inlinings);
    elements[layout_.deopt_exits] = small(exits);
    return array(elements);
  }

  static constexpr std::uint32_t kOneByte = 40, kTwoByte = 32, kCons = 41, kSliced = 43, kThin = 45,
                                 kArray = 200;

 private:
  std::uint64_t map(std::uint32_t type) {
    const std::uint64_t word = room(32) + 1;
    set(word, 0, meta_);
    set(word, layout_.map_type, static_cast<std::uint16_t>(type));
    return word;
  }

  languages::V8Layout layout_;
  std::vector<std::byte> bytes_;
  std::uint64_t next_ = kBase + 64;
  std::uint64_t meta_ = 0, last_code_ = 0;
  std::map<std::uint32_t, std::uint64_t> maps_;  ///< by type
};

}  // namespace pe::testing
