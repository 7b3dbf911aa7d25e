// Stacks to unwind with our unwinder and others: the same functions, the same depths.
//
// Each way of unwinding is a program of its own, because linking libunwind replaces backtrace(3)
// and _Unwind_Backtrace in the whole program.
// SPDX-License-Identifier: MIT
#pragma once

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pe::bench {

/// Unwinds the stack of its caller; returns the number of frames.
using Capture = std::size_t (*)();

/// A program that captures its stack again and again while it calls and returns at random: depths
/// of 10 to 60 frames, of which a few change from one capture to the next.
class CallTree {
 public:
  CallTree(benchmark::State& state, Capture capture) : state_(state), capture_(capture) {}

  void run() {
    while (is_running_)
      descend(10);
  }
  [[nodiscard]] std::size_t frames() const { return frames_; }

 private:
  using Node = void (*)(CallTree&, int depth);

  std::uint64_t random() {  // xorshift64
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 7;
    seed_ ^= seed_ << 17;
    return seed_ >> 20;
  }
  void capture() {
    is_running_ = state_.KeepRunning();
    if (is_running_)
      frames_ += capture_();
  }

  __attribute__((noinline)) void descend(int left) {
    volatile long on_stack[3];
    on_stack[0] = left;
    if (left > 0)
      descend(left - 1);
    else
      nodes()[0](*this, 10);
    on_stack[1] = left;
  }

  /// Frames of thirteen sizes; some use alloca, so that rbp is their base.
  template <std::size_t I>
  __attribute__((noinline)) static void node(CallTree& tree, int depth) {
    volatile long on_stack[1 + I * 7 % 13];
    on_stack[0] = depth;
    if constexpr (I % 8 == 3) {
      auto* memory = static_cast<volatile char*>(__builtin_alloca(16 + (tree.random() & 127)));
      memory[0] = 1;
    }
    while (tree.is_running_) {
      const std::uint64_t choice = tree.random();
      if (depth >= 60 || choice % 8 >= 5) {
        if (depth > 10)
          break;
      } else if (choice % 8 < 2) {
        tree.capture();
      } else {
        nodes()[choice >> 8 & 63](tree, depth + 1);
      }
    }
    on_stack[0] = depth;
  }
  template <std::size_t... I>
  static constexpr std::array<Node, sizeof...(I)> make_nodes(std::index_sequence<I...> /*all*/) {
    return {node<I>...};
  }
  static const std::array<Node, 64>& nodes() {
    static constexpr auto kNodes = make_nodes(std::make_index_sequence<64>());
    return kNodes;
  }

  benchmark::State& state_;
  Capture capture_;
  std::uint64_t seed_ = 88172645463325252ULL;
  std::size_t frames_ = 0;
  bool is_running_ = true;
};

/// ns for each frame; `frames` is the number over all iterations.
inline void count_frames(benchmark::State& state, std::size_t frames) {
  state.counters["frames"] = static_cast<double>(frames) / static_cast<double>(state.iterations());
  state.counters["a_frame"] = benchmark::Counter(
      static_cast<double>(frames), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// One stack of 33 frames, captured again and again.
__attribute__((noinline)) inline void fixed_stack(benchmark::State& state, Capture capture,
                                                  int depth = 24) {
  volatile long on_stack[5];
  on_stack[0] = depth;
  if (depth > 0) {
    fixed_stack(state, capture, depth - 1);
  } else {
    std::size_t frames = 0;
    while (state.KeepRunning())
      frames += capture();
    count_frames(state, frames);
  }
  on_stack[1] = depth;
}

inline void random_tree(benchmark::State& state, Capture capture) {
  CallTree tree(state, capture);
  tree.run();
  count_frames(state, tree.frames());
}

}  // namespace pe::bench
