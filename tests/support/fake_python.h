// The memory of a process that runs CPython, made by hand.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/common/script_reader.h"
#include "languages/registry.h"

namespace pe::testing {

class FakePython {
 public:
  static constexpr std::uint64_t kBase = 0x10000, kRuntime = kBase, kVersionAt = kBase + 0x700;
  static constexpr std::uint64_t kThreadPointer = 0x7f0000001000;
  static constexpr std::uint64_t k311 = 0x030b02f0, k312 = 0x030c01f0, k313 = 0x030d00f0,
                                 k314 = 0x030e0af0, k315 = 0x030f02f0;
  /// Is unreadable.
  static constexpr std::uint64_t kNowhere = 0x4000'0000;

  explicit FakePython(std::uint64_t version) : version_(version), bytes_(0x800) {
    put(kVersionAt, version);
    if (version >> 16U >= k313 >> 16U)
      publish(version);
    auto memory = this->memory();
    layout_ = std::get<languages::ScriptLayout>(layout_of(memory, version)).python;
    add_interpreter();
  }

  /// Returns the layout of that version, or why it is unknown.
  static std::variant<languages::ScriptLayout, std::string> layout_of(languages::Memory& memory,
                                                                      std::uint64_t version) {
    return languages::script_layout(memory, {.runtime = kRuntime, .version = version, .loop = {}},
                                    0);
  }

  /// Adds a newer interpreter, which gets the threads from now on.
  void add_interpreter() {
    const std::uint64_t older = std::exchange(interpreter_, room(0x2000));
    put(interpreter_ + layout_.next_interpreter, older);
    put(kRuntime + layout_.first_interpreter, interpreter_);
    last_thread_ = 0;
  }

  [[nodiscard]] const languages::PythonLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

  [[nodiscard]] std::size_t read(std::uint64_t avma, std::span<std::byte> into) const {
    if (avma < kBase || avma - kBase >= bytes_.size())
      return 0;
    // Rounded up to pages, as memory is.
    std::ranges::fill(into, std::byte{0});
    const std::size_t at = avma - kBase;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                std::min(into.size(), bytes_.size() - at), into.begin());
    return into.size();
  }
  /// Reads the memory as it is at that time.  The FakePython must outlive it.
  [[nodiscard]] languages::Memory memory() const {
    return languages::Memory([this](auto avma, auto into) { return read(avma, into); });
  }
  [[nodiscard]] languages::ScriptProcess process() const {
    const languages::ScriptBinary binary{
        .runtime = kRuntime - kBase, .version = version_, .loop = {{0x100, 0x200}}};
    return std::get<languages::ScriptProcess>(languages::ScriptProcess::open(
        [this](auto avma, auto into) { return read(avma, into); }, binary, kBase));
  }
  [[nodiscard]] languages::ScriptLayout script_layout() const {
    return {.language = languages::kScriptPython, .python = layout_};
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

  /// A str object of that kind: units of 1, 2 or 4 bytes.
  template <typename Unit>
  std::uint64_t text(std::basic_string_view<Unit> units, bool is_ascii) {
    const std::uint32_t data = is_ascii ? layout_.ascii_data : layout_.wide_data;
    const std::uint64_t avma = room(data + units.size() * sizeof(Unit));
    put(avma + layout_.text_length, std::uint64_t{units.size()});
    put(avma + layout_.text_state,
        static_cast<std::uint32_t>(sizeof(Unit) << 2U | 0x20U | (is_ascii ? 0x40U : 0U)));
    std::memcpy(bytes_.data() + (avma + data - kBase), units.data(), units.size() * sizeof(Unit));
    return avma;
  }
  std::uint64_t ascii(std::string_view characters) { return text<char>(characters, true); }

  /// A code object; `table` is its co_linetable.
  std::uint64_t code(std::string_view name, std::string_view file, std::uint32_t first_line,
                     std::string_view table) {
    return code(ascii(name), ascii(file), first_line, table);
  }
  std::uint64_t code(std::uint64_t name, std::uint64_t file, std::uint32_t first_line,
                     std::string_view table) {
    const std::uint64_t lines = room(layout_.bytes_data + table.size());
    put(lines + layout_.bytes_size, std::uint64_t{table.size()});
    std::memcpy(bytes_.data() + (lines + layout_.bytes_data - kBase), table.data(), table.size());
    const std::uint64_t avma = room(languages::kPythonCodeBytes);
    put(avma, std::uint64_t{2});  // the count of its references
    put(avma + layout_.name - 8, name);
    put(avma + layout_.name, name);
    put(avma + layout_.file, file);
    put(avma + layout_.first_line, first_line);
    put(avma + layout_.line_table, lines);
    return avma;
  }

  /// Adds a frame that calls all frames so far of the stack; they form a list, innermost first.
  struct Stack {
    std::uint64_t innermost = 0, outermost = 0;
  };
  void add_frame(Stack& stack, std::uint64_t code, std::uint64_t offset, bool ends_call) {
    const std::uint64_t frame = link(stack);
    put(frame + layout_.code, version_ >= k314 ? code | 1 : code);  // it is a tagged reference
    put(frame + layout_.instruction, code + layout_.instructions + offset);
    if (!ends_call)
      return;
    if (layout_.has_end_flag != 0)
      put(frame + layout_.end_mark, std::uint8_t{1});
    else
      add_shim(stack);
  }
  void add_shim(Stack& stack) { put(link(stack) + layout_.end_mark, std::uint8_t{3}); }

  /// Adds a thread with that stack, as the first of the list.  Returns its PyThreadState.
  std::uint64_t thread(Stack stack, std::uint64_t thread_pointer = kThreadPointer) {
    const bool is_cycle = stack.outermost != 0 && word(stack.outermost + layout_.caller) != 0;
    if (layout_.has_base_frame != 0 && !is_cycle)
      add_shim(stack);
    const std::uint64_t state = room(0x200);
    put(state + layout_.next_thread, std::exchange(last_thread_, state));
    put(state + layout_.thread_id, thread_pointer);
    std::uint64_t frame = stack.innermost;
    if (layout_.has_c_frame != 0) {
      frame = room(32);
      put(frame + layout_.frame_of_c_frame, stack.innermost);
    }
    put(state + layout_.frame, frame);
    put(interpreter_ + layout_.first_thread, state);
    return state;
  }

  /// Adds a call of the interpreter's loop whose frame is not set yet: it has an older one.
  void enter_loop(std::uint64_t state, const Stack& older) {
    const std::uint64_t c_frame = room(32);
    const std::uint64_t outer = word(state + layout_.frame);
    put(c_frame + layout_.frame_of_c_frame, older.innermost);
    put(c_frame + layout_.frame_of_c_frame + languages::kPythonPreviousOfCFrame, outer);
    put(state + layout_.frame, c_frame);
  }

 private:
  /// The values of 3.13.0, 3.14.10 and 3.15.2 for the fields that are used.
  void publish(std::uint64_t version) {
    using Fields = std::vector<std::pair<unsigned, std::uint64_t>>;
    static const Fields kOf313 = {{0, 0x7970'6775'6265'6478},
                                  {5, 632},
                                  {8, 7264},
                                  {9, 7344},
                                  {21, 8},
                                  {23, 72},
                                  {24, 152},
                                  {29, 8},
                                  {30, 0},
                                  {31, 56},
                                  {33, 70},
                                  {35, 112},
                                  {37, 128},
                                  {38, 136},
                                  {39, 68},
                                  {43, 200},
                                  {65, 16},
                                  {66, 32},
                                  {68, 32},
                                  {69, 16},
                                  {70, 40}};
    static const Fields kOf314 = {{0, 0x7970'6775'6265'6478},
                                  {5, 808},
                                  {8, 7272},
                                  {9, 7344},
                                  {24, 8},
                                  {26, 72},
                                  {27, 152},
                                  {32, 8},
                                  {33, 0},
                                  {34, 56},
                                  {36, 74},
                                  {40, 112},
                                  {42, 128},
                                  {43, 136},
                                  {44, 68},
                                  {48, 208},
                                  {75, 16},
                                  {76, 32},
                                  {78, 32},
                                  {79, 16},
                                  {80, 40}};
    static const Fields kOf315 = {{0, 0x7970'6775'6265'6478},
                                  {5, 936},
                                  {8, 7264},
                                  {9, 7336},
                                  {24, 8},
                                  {26, 72},
                                  {30, 176},
                                  {40, 8},
                                  {41, 0},
                                  {42, 56},
                                  {44, 74},
                                  {48, 112},
                                  {50, 128},
                                  {51, 136},
                                  {52, 68},
                                  {56, 208},
                                  {87, 16},
                                  {88, 32},
                                  {90, 32},
                                  {91, 16},
                                  {92, 40}};
    const std::uint64_t minor = version >> 16U;
    for (const auto& [number, value] : minor == k313 >> 16U   ? kOf313
                                       : minor == k314 >> 16U ? kOf314
                                                              : kOf315)
      put(kRuntime + number * 8, value);
    put(kRuntime + 8, version);
  }
  [[nodiscard]] std::uint64_t word(std::uint64_t avma) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + (avma - kBase), sizeof value);
    return value;
  }
  std::uint64_t link(Stack& stack) {
    const std::uint64_t frame = room(languages::kPythonFrameBytes);
    if (stack.outermost == 0)
      stack.innermost = frame;
    else
      put(stack.outermost + layout_.caller, frame);
    stack.outermost = frame;
    return frame;
  }

  std::uint64_t version_;
  std::vector<std::byte> bytes_;
  languages::PythonLayout layout_{};
  std::uint64_t interpreter_ = 0, last_thread_ = 0;
};

}  // namespace pe::testing
