// The memory of a process that runs CRuby, made by hand.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
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
#include "languages/registry.h"

namespace pe::testing {

class FakeRuby {
 public:
  /// The VM's structure is at kVm, kRuntime has the pointer to it, and kVersionAt the version.
  static constexpr std::uint64_t kBase = 0x10000, kRuntime = kBase, kVersionAt = kBase + 0x20,
                                 kVm = kBase + 0x40;
  static constexpr std::uint64_t kThreadPointer = 0x7f0000001000;
  static constexpr std::uint64_t k30 = languages::ruby_version(3, 0),
                                 k31 = languages::ruby_version(3, 1),
                                 k32 = languages::ruby_version(3, 2),
                                 k33 = languages::ruby_version(3, 3),
                                 k34 = languages::ruby_version(3, 4);
  /// Is unreadable.
  static constexpr std::uint64_t kNowhere = 0x4000'0000;
  /// Flags of frames.
  static constexpr std::uint64_t kMethod = 0x11110001, kEndsCall = 0x20, kOfC = 0x55550081,
                                 kDummy = 0x79990021;

  explicit FakeRuby(std::uint64_t version)
      : version_(version), layout_(layout_of(version).ruby), bytes_(0x80) {
    put(kRuntime, kVm);
    put(kVersionAt, version);
    put(kVm + languages::kRubyRactors, kVm + languages::kRubyRactors);
    ractor_ = ractor();
  }

  [[nodiscard]] const languages::RubyLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] languages::ScriptLayout script_layout() const { return layout_of(version_); }
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
  /// Reads the memory as it is at that time.  The FakeRuby must outlive it.
  [[nodiscard]] languages::Memory memory() const {
    return languages::Memory([this](auto avma, auto into) { return read(avma, into); });
  }
  [[nodiscard]] static languages::ScriptBinary binary(std::uint64_t version) {
    return {.language = languages::kScriptRuby,
            .runtime = kRuntime - kBase,
            .version = version,
            .loop = {{0x100, 0x200}}};
  }
  [[nodiscard]] static languages::ScriptLayout layout_of(std::uint64_t version) {
    languages::Memory none([](auto, auto) { return std::size_t{0}; });
    return std::get<languages::ScriptLayout>(languages::script_layout(none, binary(version), 0));
  }
  [[nodiscard]] languages::ScriptProcess process() const {
    return std::get<languages::ScriptProcess>(languages::ScriptProcess::open(
        [this](auto avma, auto into) { return read(avma, into); }, binary(version_), kBase));
  }

  template <typename T>
  void put(std::uint64_t avma, T value) {
    std::memcpy(bytes_.data() + (avma - kBase), &value, sizeof value);
  }
  template <typename T>
  [[nodiscard]] T get(std::uint64_t avma) const {
    T value;
    std::memcpy(&value, bytes_.data() + (avma - kBase), sizeof value);
    return value;
  }
  std::uint64_t room(std::size_t size) {
    const std::uint64_t avma = kBase + bytes_.size();
    bytes_.resize((bytes_.size() + size + 15) / 16 * 16);
    return avma;
  }
  std::uint64_t copy(std::span<const std::byte> bytes) {
    const std::uint64_t avma = room(bytes.size());
    std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(avma - kBase));
    return avma;
  }

  /// A String; `is_inside`: its text is in the object.
  std::uint64_t text(std::string_view characters, bool is_inside = false) {
    constexpr std::uint64_t kString = 5, kOutside = 0x2000;
    constexpr unsigned kLengthShift = 14;
    const std::uint64_t data = is_inside ? 0 : copy(std::as_bytes(std::span(characters)));
    const std::uint64_t avma = room(24 + (is_inside ? characters.size() : 0) + 8);
    const bool is_in_flags = is_inside && layout_.has_length == 0;
    put(avma, kString | (is_inside ? 0 : kOutside) |
                  (is_in_flags ? std::uint64_t{characters.size()} << kLengthShift : 0));
    if (!is_in_flags)
      put(avma + 16, std::uint64_t{characters.size()});
    if (!is_inside)
      put(avma + 24, data);
    else
      std::memcpy(bytes_.data() + (avma + (layout_.has_length != 0 ? 24 : 16) - kBase),
                  characters.data(), characters.size());
    return avma;
  }
  /// An Array of two Strings.
  std::uint64_t path(std::string_view characters, bool is_inside) {
    constexpr std::uint64_t kArray = 7, kInside = 0x2000;
    const std::array items = {text(characters), text("/real/path.rb")};
    const std::uint64_t data = is_inside ? 0 : copy(std::as_bytes(std::span(items)));
    const std::uint64_t avma = room(40);
    put(avma, kArray | (is_inside ? kInside : 0));
    if (is_inside)
      put(avma + 16, items);
    else
      put(avma + 32, data);
    return avma;
  }

  /// The lines of a function, each from a word of its instructions on.
  struct Line {
    std::uint32_t start, line;
  };
  /// An instruction sequence of `size` words.
  std::uint64_t code(std::string_view name, std::string_view file, std::uint32_t first_line,
                     std::uint32_t size = 8, std::span<const Line> lines = {}) {
    const std::uint64_t body = room(256);
    put(body + languages::kRubySize, size);
    put(body + languages::kRubyInstructions, room(size * 8));
    put(body + languages::kRubyPath, text(file));
    put(body + languages::kRubyLabel, text(name));
    put_line(body, first_line);
    const std::uint64_t entries = room(layout_.line_bytes * lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      put(entries + layout_.line_bytes * i, lines[i].line);
    put(body + layout_.lines, entries);
    put(body + layout_.lines + 16, static_cast<std::uint32_t>(lines.size()));
    put(body + layout_.lines + 24, starts(size, lines));
    const std::uint64_t sequence = room(40);
    put(sequence + languages::kRubyBody, body);
    return sequence;
  }
  [[nodiscard]] std::uint64_t body_of(std::uint64_t sequence) const {
    return get<std::uint64_t>(sequence + languages::kRubyBody);
  }
  void put_line(std::uint64_t body, std::uint32_t line) {
    if (layout_.has_tagged_line != 0)
      put(body + languages::kRubyLine, std::uint64_t{line} << 1U | 1U);
    else
      put(body + languages::kRubyLine, line);
  }

  struct Frame {
    std::uint64_t code = 0;  ///< of code(); 0: none
    std::uint32_t next = 0;  ///< the next instruction: its word
    std::uint64_t flags = kMethod;
  };
  /// An execution context with these frames, the innermost first.
  std::uint64_t context(std::span<const Frame> frames) {
    constexpr std::uint64_t kFree = 64;  // for values
    const std::uint64_t size = kFree + frames.size() * layout_.frame_bytes;
    const std::uint64_t stack = room(size), fiber = room(languages::kRubyContext + 1024);
    const std::uint64_t made = fiber + languages::kRubyContext;
    put(made + layout_.thread - languages::kRubyFiberBeforeThread, fiber);
    std::uint64_t at = stack + kFree;
    put(made + languages::kRubyStack, stack);
    put(made + languages::kRubyStackWords, size / 8);
    put(made + languages::kRubyInnermost, at);
    for (const Frame& frame : frames) {
      put(at + languages::kRubySequence, frame.code);
      if (frame.code != 0)
        put(at + languages::kRubyInstruction,
            get<std::uint64_t>(body_of(frame.code) + languages::kRubyInstructions) +
                frame.next * std::uint64_t{8});
      const std::uint64_t environment = room(8);
      put(environment, frame.flags);
      put(at + languages::kRubyEnvironment, environment);
      at += layout_.frame_bytes;
    }
    return made;
  }
  /// Makes one execution context the resumer of another, as of a Ruby with that setjmp().
  void resume(std::uint64_t by, std::uint64_t context, bool is_builtin) {
    put(context + layout_.previous + (is_builtin ? 0 : languages::kRubyMoreOfSetjmp),
        by - languages::kRubyContext);
  }
  /// Adds a ractor, which gets the threads from now on.
  std::uint64_t ractor() {
    ractor_ = room(layout_.next_ractor + 64);
    put(ractor_ + layout_.threads, ractor_ + layout_.threads);
    link(kVm + languages::kRubyRactors, ractor_ + layout_.next_ractor);
    return ractor_;
  }
  /// Adds a thread with these frames, as the first of its list.  Returns its rb_thread_t.
  std::uint64_t thread(std::span<const Frame> frames,
                       std::uint64_t thread_pointer = kThreadPointer) {
    const std::uint64_t state = room(128);
    if (layout_.native_thread != 0)
      put(state + layout_.native_thread, room(64));
    run_on(state, thread_pointer);
    const std::uint64_t made = context(frames);
    put(state + layout_.context, made);
    put(made + layout_.thread, state);
    link(ractor_ + layout_.threads, state);
    return state;
  }
  /// Makes a native thread run a thread.
  void run_on(std::uint64_t state, std::uint64_t thread_pointer) {
    const std::uint32_t to_native = layout_.native_thread;
    const auto native = to_native != 0 ? get<std::uint64_t>(state + to_native) : state;
    put(native + layout_.thread_id, thread_pointer);
  }
  /// Ends a thread, which stays in the list for a while.
  void end(std::uint64_t state) {
    const auto context = get<std::uint64_t>(state + layout_.context);
    for (const std::uint32_t field :
         {languages::kRubyStack, languages::kRubyStackWords, languages::kRubyInnermost})
      put(context + field, std::uint64_t{0});
  }

 private:
  void link(std::uint64_t list, std::uint64_t node) {
    put(node, get<std::uint64_t>(list));
    put(list, node);
  }
  /// A succ_index_table.
  std::uint64_t starts(std::uint32_t size, std::span<const Line> lines) {
    constexpr std::uint32_t kImmediate = 54, kBlock = 512;
    const std::uint32_t blocks = size > kImmediate ? (size - kImmediate + kBlock - 1) / kBlock : 0;
    const std::uint64_t table = room(48 + 80 * blocks);
    std::uint64_t rank = 0;
    for (std::uint32_t position = 0; position < size; ++position) {
      const bool is_start = std::ranges::find(lines, position, &Line::start) != lines.end();
      rank += is_start ? 1 : 0;
      const std::uint32_t in_blocks = position - kImmediate;
      const std::uint64_t word = position < kImmediate ? table + position / 9 * 8
                                                       : table + 48 + in_blocks / kBlock * 80 + 16 +
                                                             in_blocks % kBlock / 64 * 8;
      const std::uint64_t bits = position < kImmediate ? rank << position % 9 * 7
                                                       : std::uint64_t{is_start} << in_blocks % 64;
      put(word, get<std::uint64_t>(word) | bits);
    }
    return table;
  }

  std::uint64_t version_;
  languages::RubyLayout layout_;
  std::vector<std::byte> bytes_;
  std::uint64_t ractor_ = 0;
};

}  // namespace pe::testing
