// Finds a Ruby thread in its VM's memory, and walks its frames.  Allocates nothing and takes no
// lock, so signal handlers may call it.
//
// The VM has a circular list of ractors, and each of them a list of threads.  A thread's execution
// context is that of the fiber that it runs, which leads to the fiber that has resumed it.  Its
// control frames are an array at the end of the VM stack, the innermost first.  All of these are
// untrusted, and bounded.
//
// Sources: CRuby, vm_core.h, ractor_core.h, thread_pthread.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "languages/common/frame.h"
#include "languages/ruby/layout.h"

namespace pe::languages {

/// The fields of an rb_iseq_constant_body by which it differs from another that had its address.
struct RubyCodeFields {
  std::uint64_t path = 0, label = 0;  ///< avma of their objects
  std::uint64_t instructions = 0;     ///< avma
  std::uint32_t size = 0;             ///< of the instructions, in words
  std::uint32_t first_line = 0;

  [[nodiscard]] std::uint32_t mark() const noexcept {
    return mark_of({label, path, instructions, first_line});
  }
};

/// Returns nullopt if the body is unreadable.
template <typename M>
std::optional<RubyCodeFields> read_ruby_fields(M& memory, const RubyLayout& layout,
                                               std::uint64_t body) {
  std::array<std::byte, kRubyBodyHead> bytes;
  if (!memory.read(body, bytes))
    return std::nullopt;
  RubyCodeFields fields;
  std::memcpy(&fields.path, bytes.data() + kRubyPath, sizeof fields.path);
  std::memcpy(&fields.label, bytes.data() + kRubyLabel, sizeof fields.label);
  std::memcpy(&fields.instructions, bytes.data() + kRubyInstructions, sizeof fields.instructions);
  std::memcpy(&fields.size, bytes.data() + kRubySize, sizeof fields.size);
  std::memcpy(&fields.first_line, bytes.data() + kRubyLine, sizeof fields.first_line);
  fields.first_line >>= layout.has_tagged_line != 0 ? 1U : 0U;  // an Integer's lowest bit is a tag
  return fields;
}

/// Returns the execution context of an rb_thread_t if it is that thread's and has a VM stack;
/// otherwise 0.  A Ruby thread that has ended keeps the identity of its native thread, which may
/// run the next one, but not its VM stack (rb_threadptr_root_fiber_terminate(), cont.c).
template <typename M>
std::uint64_t ruby_context(M& memory, const RubyLayout& layout, std::uint64_t state,
                           std::uint64_t thread_pointer) {
  const std::uint64_t native =
      layout.native_thread != 0 ? pointer_at(memory, state + layout.native_thread) : state;
  if (native == 0 || pointer_at(memory, native + layout.thread_id) != thread_pointer)
    return 0;
  const std::uint64_t context = pointer_at(memory, state + layout.context);
  const bool is_running = context != 0 && pointer_at(memory, context + layout.thread) == state &&
                          pointer_at(memory, context + kRubyStack) != 0;
  return is_running ? context : 0;
}

/// Returns the execution context of the fiber that has resumed another one; 0 if there is none.
template <typename M>
std::uint64_t resuming_ruby_context(M& memory, const RubyLayout& layout, std::uint64_t context) {
  for (std::uint32_t more = 0; more <= kRubyMoreOfSetjmp; more += kRubyMoreOfSetjmp) {
    const std::uint64_t fiber = pointer_at(memory, context + layout.previous + more);
    const std::uint64_t found = fiber + kRubyContext;
    // A context leads back to its fiber, so nothing else is mistaken for one.
    if (fiber != 0 && pointer_at(memory, found + layout.thread - kRubyFiberBeforeThread) == fiber &&
        pointer_at(memory, found + layout.thread) == pointer_at(memory, context + layout.thread))
      return found;
  }
  return 0;
}

/// Finds the rb_thread_t of a thread; 0 if there is none.
template <typename M>
std::uint64_t find_ruby_thread(M& memory, const RubyLayout& layout, const ScriptThread& thread) {
  constexpr int kMostRactors = 1024, kMostThreads = 16'384;
  int threads = 0;
  const std::uint64_t vm = pointer_at(memory, thread.runtime);
  const std::uint64_t ractors = vm + kRubyRactors;
  std::uint64_t ractor = vm != 0 ? pointer_at(memory, ractors) : 0;
  for (int i = 0; ractor != 0 && ractor != ractors && i < kMostRactors; ++i) {
    const std::uint64_t list = ractor - layout.next_ractor + layout.threads;
    std::uint64_t state = pointer_at(memory, list);
    for (; state != 0 && state != list && threads < kMostThreads; ++threads) {
      if (ruby_context(memory, layout, state, thread.thread_pointer) != 0)
        return state;
      state = pointer_at(memory, state);  // the list's node comes first in rb_thread_t
    }
    ractor = pointer_at(memory, ractor);
  }
  return 0;
}

/// Walks the frames of one thread.  `OnFrame` is called for each, the innermost first.
template <typename M, typename OnFrame>
class RubyWalk {
 public:
  RubyWalk(M& memory, const RubyLayout& layout, OnFrame& on_frame)
      : memory_(memory), layout_(layout), on_frame_(on_frame) {}

  /// Adds the frames of an execution context, and of the fibers that have resumed it.  Returns
  /// false if outer frames are missing.
  bool add_fibers(std::uint64_t context) {
    for (std::size_t i = 0; i < kMostFibers; ++i) {
      if (!add_context(context))
        return false;
      context = resuming_ruby_context(memory_, layout_, context);
      if (context == 0)
        return true;
      add({});
    }
    return false;
  }

 private:
  /// Frames of C's functions are not added, but counted here.
  static constexpr std::size_t kMostControlFrames = 2 * kMostScriptFrames;
  static constexpr std::size_t kMostFibers = 64;

  /// Returns false if outer frames are missing.
  bool add_context(std::uint64_t context) {
    std::array<std::uint64_t, 3> words{};
    if (!memory_.read(context, std::as_writable_bytes(std::span(words))))
      return false;
    const auto [stack, size, innermost] = words;
    const std::uint64_t end = stack + size * sizeof(std::uint64_t);
    for (std::uint64_t at = innermost; at < end && at >= stack; at += layout_.frame_bytes)
      if (frames_++ == kMostControlFrames || count_ == kMostScriptFrames || !add_frame(at))
        return false;
    return true;
  }

  bool add_frame(std::uint64_t at) {
    std::array<std::uint64_t, kRubyFrameHead / sizeof(std::uint64_t)> words{};
    if (!memory_.read(at, std::as_writable_bytes(std::span(words)))) {
      add({.code = kUnreadableCode});
      return false;
    }
    const auto word = [&words](std::uint32_t offset) { return words[offset / sizeof words[0]]; };
    const std::uint64_t sequence = word(kRubySequence), environment = word(kRubyEnvironment);
    if (sequence == 0 || environment == 0)
      return true;
    const std::uint64_t flags = pointer_at(memory_, environment);
    if (flags == 0) {  // a frame has some
      add({.code = kUnreadableCode});
      return true;
    }
    if ((flags & kRubyIsOfC) != 0 || (flags & kRubyKindMask) == kRubyDummy)
      return true;
    add_function(pointer_at(memory_, sequence + kRubyBody), word(kRubyInstruction),
                 (flags & kRubyEndsCall) != 0);
    return true;
  }
  void add_function(std::uint64_t body, std::uint64_t instruction, bool ends_call) {
    if (body != body_) {
      const auto fields = read_ruby_fields(memory_, layout_, body);
      body_ = body;
      is_readable_ = fields.has_value() && body > kUnreadableCode;
      instructions_ = fields ? fields->instructions : 0;
      mark_ = fields ? fields->mark() : 0;
    }
    if (!is_readable_)
      return add({.code = kUnreadableCode, .ends_call = ends_call});
    add({body, place_of(instructions_, instruction), mark_, ends_call});
  }
  void add(const ScriptFrame& frame) {
    ++count_;
    on_frame_(frame);
  }

  M& memory_;
  const RubyLayout& layout_;
  OnFrame& on_frame_;
  std::size_t count_ = 0, frames_ = 0;
  // The last body, for recursion.
  std::uint64_t body_ = kNoCode;
  bool is_readable_ = false;
  std::uint64_t instructions_ = 0;
  std::uint32_t mark_ = 0;
};

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no Ruby.
/// `known` is the thread's last known rb_thread_t, initially 0; it saves a search.  Returns false
/// if outer frames are missing.
template <typename M, typename OnFrame>
bool walk_ruby_thread(M& memory, const RubyLayout& layout, const ScriptThread& thread,
                      std::uint64_t& known, OnFrame on_frame) {
  std::uint64_t context =
      known != 0 ? ruby_context(memory, layout, known, thread.thread_pointer) : 0;
  if (context == 0) {
    known = find_ruby_thread(memory, layout, thread);
    context = known != 0 ? ruby_context(memory, layout, known, thread.thread_pointer) : 0;
  }
  RubyWalk<M, OnFrame> walk(memory, layout, on_frame);
  return context == 0 || walk.add_fibers(context);
}

}  // namespace pe::languages
