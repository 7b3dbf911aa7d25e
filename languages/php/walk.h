// Walks PHP's frames.  Allocates nothing and takes no lock, so signal handlers may call it.
//
// The list is untrusted: it is bounded, so a cycle ends.
//
// Sources: PHP, Zend/zend_compile.h, zend_execute.h, zend_generators.c, zend_types.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "languages/common/frame.h"
#include "languages/php/layout.h"

namespace pe::languages {

/// The used fields of a zend_function.  Texts of functions have a hash, so text that has replaced
/// another at the same address, as in the next request, differs.
struct PhpFunction {
  std::uint64_t name = 0, name_hash = 0;  ///< avma of its zend_string; 0: none
  std::uint64_t scope = 0;                ///< avma of its zend_class_entry; 0: none
  std::uint64_t file = 0, file_hash = 0;  ///< 0: a function in C
  std::uint32_t first_line = 0;
  bool is_internal = false;  ///< a function in C
};

/// Returns the mark of a function with these fields.
constexpr std::uint32_t php_mark(const PhpFunction& function) noexcept {
  return mark_of({function.name, function.name_hash, function.scope, function.file,
                  function.file_hash, function.first_line});
}

/// Returns nullopt if the function is unreadable, or none.
template <typename M>
std::optional<PhpFunction> read_php_function(M& memory, const PhpLayout& layout,
                                             std::uint64_t avma) {
  std::array<std::byte, kPhpFunctionBytes> bytes;
  const auto word = [&bytes](std::uint32_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  if (!memory.read(avma, std::span(bytes).first(kPhpHeadBytes)))
    return std::nullopt;
  const auto type = std::to_integer<std::uint8_t>(bytes[kPhpType]);
  PhpFunction function{
      .name = word(kPhpName), .scope = word(kPhpScope), .is_internal = type == kPhpIsInternal};
  if (function.name != 0)
    function.name_hash = pointer_at(memory, function.name + kPhpTextHash);
  if (function.is_internal)
    return function;
  if ((type != kPhpIsUser && type != kPhpIsEval) ||
      layout.file > kPhpFunctionBytes - sizeof(std::uint64_t) ||
      layout.first_line > kPhpFunctionBytes - sizeof(std::uint64_t))
    return std::nullopt;
  function.file = pointer_at(memory, avma + layout.file);
  function.file_hash = pointer_at(memory, function.file + kPhpTextHash);
  function.first_line = number_at<std::uint32_t>(memory, avma + layout.first_line);
  return function;
}

/// Walks the frames of the process.  `OnFrame` is called for each, the innermost first.
template <typename M, typename OnFrame>
class PhpWalk {
 public:
  PhpWalk(M& memory, const PhpLayout& layout, OnFrame& on_frame)
      : memory_(memory), layout_(layout), on_frame_(on_frame) {}

  /// Returns false if outer frames are missing.
  bool walk(std::uint64_t innermost) {
    // Frames without a function count as steps, so that a cycle of them ends.
    std::uint64_t at = innermost;
    for (std::size_t steps = 0; at != 0 && steps < kMostScriptFrames; ++steps) {
      std::array<std::byte, kPhpFrameBytes> bytes;
      if (!memory_.read(at, bytes)) {
        on_frame_(ScriptFrame{.code = kUnreadableCode});
        return false;
      }
      std::uint32_t call_info = 0;
      std::uint64_t function = 0, instruction = 0;
      std::memcpy(&instruction, bytes.data() + kPhpInstruction, sizeof instruction);
      std::memcpy(&function, bytes.data() + kPhpFunction, sizeof function);
      std::memcpy(&call_info, bytes.data() + kPhpCallInfo, sizeof call_info);
      std::memcpy(&at, bytes.data() + kPhpCaller, sizeof at);
      if (function != 0)
        add_function(function, instruction, (call_info & kPhpTop) != 0);
      else
        add_generator(bytes);
    }
    return at == 0;
  }

 private:
  /// A generator that delegates ("yield from") is represented by a frame without a function.
  void add_generator(std::span<const std::byte> placeholder) {
    std::uint64_t generator = 0;
    std::memcpy(&generator, placeholder.data() + kPhpThis, sizeof generator);
    const std::uint64_t frame = pointer_at(memory_, generator + kPhpGeneratorFrame);
    if (const std::uint64_t function = pointer_at(memory_, frame + kPhpFunction); function != 0)
      add_function(function, pointer_at(memory_, frame + kPhpInstruction), false);
  }
  void add_function(std::uint64_t avma, std::uint64_t instruction, bool is_top) {
    if (avma != code_) {
      function_ = read_php_function(memory_, layout_, avma);
      code_ = avma;
    }
    if (!function_ || avma <= kUnreadableCode)
      return on_frame_(ScriptFrame{.code = kUnreadableCode});
    // A fiber starts with such a function, on a native stack of its own.
    if (function_->is_internal && function_->name == 0)
      return on_frame_(ScriptFrame{});
    const bool is_script = !function_->is_internal;
    on_frame_(ScriptFrame{avma,
                          is_script ? number_at<std::uint32_t>(memory_, instruction + kPhpLine) : 0,
                          php_mark(*function_), is_script && is_top});
  }

  M& memory_;
  const PhpLayout& layout_;
  OnFrame& on_frame_;
  // The last function, for recursion.
  std::uint64_t code_ = kNoCode;
  std::optional<PhpFunction> function_;
};

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no PHP.  A
/// frame's place is its line.  Only the first thread runs PHP.  Returns false if outer frames are
/// missing.
template <typename M, typename OnFrame>
bool walk_php_thread(M& memory, const PhpLayout& layout, const ScriptThread& thread,
                     std::uint64_t& /*known*/, OnFrame on_frame) {
  if (!thread.is_first)
    return true;
  return PhpWalk<M, OnFrame>(memory, layout, on_frame)
      .walk(pointer_at(memory, thread.runtime + layout.current));
}

}  // namespace pe::languages
