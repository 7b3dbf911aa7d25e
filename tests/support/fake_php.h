// The memory of a process that runs PHP, made by hand.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/common/script_reader.h"

namespace pe::testing {

class FakePhp {
 public:
  static constexpr std::uint64_t kBase = 0x10000, kGlobals = kBase;
  static constexpr std::uint64_t k80 = 0x0800, k81 = 0x0801, k82 = 0x0802, k83 = 0x0803,
                                 k84 = 0x0804, k85 = 0x0805;
  /// Is unreadable.
  static constexpr std::uint64_t kNowhere = 0x4000'0000;

  explicit FakePhp(std::uint64_t version)
      : version_(version), bytes_(0x400), layout_(layout_of(version).php) {}

  [[nodiscard]] const languages::PhpLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

  [[nodiscard]] std::size_t read(std::uint64_t avma, std::span<std::byte> into) const {
    return read_of(bytes_, avma, into);
  }
  /// Reads from `bytes` as if they were the memory.  Rounds up to pages, as memory is.
  static std::size_t read_of(std::span<const std::byte> bytes, std::uint64_t avma,
                             std::span<std::byte> into) {
    if (avma < kBase || avma - kBase >= bytes.size())
      return 0;
    std::ranges::fill(into, std::byte{0});
    const std::size_t at = avma - kBase;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                std::min(into.size(), bytes.size() - at), into.begin());
    return into.size();
  }
  /// The interpreter's file: its svma are `kBase` lower.
  static languages::ScriptBinary binary(std::uint64_t version) {
    return {.language = languages::kScriptPhp,
            .runtime = kGlobals - kBase,
            .version = version,
            .loop = {{0x100, 0x200}}};
  }
  [[nodiscard]] static languages::ScriptLayout layout_of(std::uint64_t version) {
    languages::Memory none([](auto, auto) { return std::size_t{0}; });
    return std::get<languages::ScriptLayout>(languages::script_layout(none, binary(version), 0));
  }
  /// Reads the memory as it is at that time.  The FakePhp must outlive it.
  [[nodiscard]] languages::ScriptProcess process() const {
    return std::get<languages::ScriptProcess>(languages::ScriptProcess::open(
        [this](auto avma, auto into) { return read(avma, into); }, binary(version_), kBase));
  }

  template <typename T>
  void put(std::uint64_t avma, T value) {
    std::memcpy(bytes_.data() + (avma - kBase), &value, sizeof value);
  }
  std::uint64_t room(std::size_t size) {
    const std::uint64_t avma = kBase + bytes_.size();
    bytes_.resize((bytes_.size() + size + 15) / 16 * 16);
    return avma;
  }

  /// A zend_string.
  std::uint64_t text(std::string_view characters) {
    const std::uint64_t avma = room(languages::kPhpTextData + characters.size() + 1);
    put_text(avma, characters);
    return avma;
  }
  void put_text(std::uint64_t avma, std::string_view characters) {
    put(avma + languages::kPhpTextHash, std::uint64_t{std::hash<std::string_view>()(characters)});
    put(avma + languages::kPhpTextLength, std::uint64_t{characters.size()});
    std::memcpy(bytes_.data() + (avma + languages::kPhpTextData - kBase), characters.data(),
                characters.size());
  }
  /// A zend_class_entry.
  std::uint64_t scope(std::string_view name) {
    const std::uint64_t avma = room(64);
    put(avma + languages::kPhpClassName, text(name));
    return avma;
  }

  /// A function of a script; `name` and `scope` may be 0.
  std::uint64_t function(std::uint64_t name, std::uint64_t scope, std::uint64_t file,
                         std::uint32_t first_line) {
    const std::uint64_t avma = head(2, name, scope);
    put(avma + layout_.file, file);
    put(avma + layout_.first_line, first_line);
    return avma;
  }
  std::uint64_t function(std::string_view name, std::string_view file, std::uint32_t first_line) {
    return function(text(name), 0, text(file), first_line);
  }
  /// A function in C; without a name: the start of a fiber.
  std::uint64_t internal(std::string_view name) {
    return head(languages::kPhpIsInternal, name.empty() ? 0 : text(name), 0);
  }

  /// Frames form a list, the innermost first.
  struct Stack {
    std::uint64_t innermost = 0, outermost = 0;
  };
  /// Adds a frame that calls all frames so far of the stack, and returns it.
  std::uint64_t add_frame(Stack& stack, std::uint64_t function, std::uint32_t line, bool is_top) {
    const std::uint64_t frame = room(80);
    const std::uint64_t instruction = room(32);
    put(instruction + languages::kPhpLine, line);
    put(frame + languages::kPhpInstruction, instruction);
    put(frame + languages::kPhpFunction, function);
    put(frame + languages::kPhpCallInfo, is_top ? std::uint32_t{languages::kPhpTop} : 0U);
    if (stack.outermost == 0)
      stack.innermost = frame;
    else
      put(stack.outermost + languages::kPhpCaller, frame);
    stack.outermost = frame;
    return frame;
  }
  /// Adds the placeholder of a generator that delegates; its own frame has that function.
  void add_generator(Stack& stack, std::uint64_t function, std::uint32_t line) {
    Stack own;
    const std::uint64_t frame = add_frame(own, function, line, true);
    const std::uint64_t generator = room(128);
    put(generator + languages::kPhpGeneratorFrame, frame);
    put(add_frame(stack, 0, 0, false) + languages::kPhpThis, generator);
  }
  void run(const Stack& stack) { put(kGlobals + layout_.current, stack.innermost); }

 private:
  std::uint64_t head(std::uint8_t type, std::uint64_t name, std::uint64_t scope) {
    const std::uint64_t avma = room(languages::kPhpFunctionBytes);
    put(avma + languages::kPhpType, type);
    put(avma + languages::kPhpName, name);
    put(avma + languages::kPhpScope, scope);
    return avma;
  }

  std::uint64_t version_;
  std::vector<std::byte> bytes_;
  languages::PhpLayout layout_;
};

}  // namespace pe::testing
