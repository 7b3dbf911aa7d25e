// What ends a recording from outside, Ctrl-C and its kin or the end of its time, also while the
// reader of the stream makes us wait.
//
//     Ending ending(signals, duration_ns);
//     ending.on_stop(...);                                 so that nothing more is counted
//     out.wait_by([&](int fd) { return ending.wait_for_room(fd); });
//     ending.begin_at(monotonic_ns());                     the recording begins
//
// A recording ends once.  What it has by then is still written, for as long as its reader wants to
// take; a signal that comes after that, while the reader takes nothing, cuts the output off.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/cli/stop_signals.h"

namespace pe::record {

enum class Ended { kSignal, kDuration, kTarget, kReaderGone };

class Ending {
 public:
  /// `signals` must outlive this; no duration: it may last for ever.
  Ending(StopSignals& signals, std::optional<std::uint64_t> duration_ns)
      : signals_(signals), duration_ns_(duration_ns) {}

  /// What is to be done as soon as the recording ends, whatever else is going on.
  void on_stop(std::function<void()> stop) { stop_ = std::move(stop); }
  /// What is to be done where, the recording over, its reader takes nothing for a second; once.
  void on_stall(std::function<void()> tell) { tell_stall_ = std::move(tell); }
  /// Called with each signal before it ends the recording: true if it is not to.
  using Bears = std::function<bool(const StopSignal& signal)>;
  void bear_signals_by(Bears bears) { bears_ = std::move(bears); }
  /// The time runs from then on (CLOCK_MONOTONIC).
  void begin_at(std::uint64_t time_ns) { began_ns_ = time_ns; }

  /// To poll(2) for signals.
  [[nodiscard]] int fd() const noexcept { return signals_.fd(); }
  /// Until its time is up, in nanoseconds; nullopt: there is no such time.
  [[nodiscard]] std::optional<std::uint64_t> left_ns() const;
  /// Whether a signal, or the end of the time, has ended the recording, by now.
  bool is_stopped_by_signal();
  bool is_over_time();
  /// Ends it for another reason.  Calls what on_stop() was given, if that has not been called.
  void stop();

  /// Waits until a write to `fd` does not block.  False: the output is to be cut off.
  bool wait_for_room(int fd);
  [[nodiscard]] bool was_cut_off() const noexcept { return was_cut_off_; }

 private:
  void end_by(Ended why);
  void look_while_waiting();
  [[nodiscard]] int patience_ms() const;

  StopSignals& signals_;
  std::optional<std::uint64_t> duration_ns_;
  std::function<void()> stop_, tell_stall_;
  Bears bears_;                 ///< null: none
  std::uint64_t began_ns_ = 0;  ///< 0: not yet
  std::uint64_t stopped_ns_ = 0;
  std::optional<Ended> ended_;
  bool was_cut_off_ = false;
};

/// What on_stall() may say, and what the closing line says of an output that was cut off.
inline constexpr const char* kReaderStalls =
    "the recording is over; waiting for the reader of the stream (another signal cuts it off)";
inline constexpr const char* kCutOff = "; the output was cut off: its reader had not taken it all";

}  // namespace pe::record
