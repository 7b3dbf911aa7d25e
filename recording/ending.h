// Ends a recording from outside: by Ctrl-C or a similar signal, or when its time is up.  This also
// works while the reader of the stream makes us wait.
//
//     Ending ending(signals, duration_ns);
//     ending.on_stop(...);                                 the callback stops all counting
//     out.wait_by([&](int fd) { return ending.wait_for_room(fd); });
//     ending.begin_at(monotonic_ns());                     the recording starts
//
// A recording ends once.  The data recorded by that time is still written, as long as its reader
// accepts it.  A later signal cuts the output off, if the reader accepts nothing.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "recording/child.h"

namespace pe::recording {

enum class Ended { kSignal, kDuration, kTarget, kReaderGone };

class Ending {
 public:
  /// `signals` must outlive this.  Without a duration the recording has no time limit.
  Ending(StopSignals& signals, std::optional<std::uint64_t> duration_ns)
      : signals_(signals), duration_ns_(duration_ns) {}

  /// Sets a function that is called as soon as the recording ends, even while output waits for its
  /// reader.
  void on_stop(std::function<void()> stop) { stop_ = std::move(stop); }
  /// Sets a function that is called once, if output still waits for its reader a second after the
  /// recording's end.
  void on_stall(std::function<void()> tell) { tell_stall_ = std::move(tell); }
  /// A function that is called with each signal that would end the recording.  It returns true if
  /// the recording must continue.
  using Bears = std::function<bool(const StopSignal& signal)>;
  void bear_signals_by(Bears bears) { bears_ = std::move(bears); }
  /// Starts the duration at `time_ns` (CLOCK_MONOTONIC).
  void begin_at(std::uint64_t time_ns) { began_ns_ = time_ns; }

  /// The descriptor to poll(2) for signals.
  [[nodiscard]] int fd() const noexcept { return signals_.fd(); }
  /// Returns the nanoseconds that are left; nullopt if there is no time limit, or it has not
  /// started.
  [[nodiscard]] std::optional<std::uint64_t> left_ns() const;
  /// Returns whether a signal waits to be handled.
  [[nodiscard]] bool has_signal() const;
  /// Returns whether a signal (or the timeout) has ended the recording; ends it if that is due.
  bool is_stopped_by_signal();
  bool is_over_time();
  /// Ends the recording for another reason.  Calls the function of on_stop(), unless that was
  /// called before.
  void stop();

  /// Ends the recording as a signal does.
  void end_now() { end_by(Ended::kSignal); }

  /// Ends the recording if that is due.  Long work must call it often.
  void look();

  /// Waits until a write to `fd` does not block.  Returns false if the output must be cut off.
  bool wait_for_room(int fd);
  [[nodiscard]] bool was_cut_off() const noexcept { return was_cut_off_; }
  /// Returns the most CPU time that the recording thread has used from one check to the next.
  [[nodiscard]] std::uint64_t longest_unchecked_ns() const noexcept { return longest_ns_; }

 private:
  void note_check();
  void check_while_waiting();
  void end_by(Ended why);
  [[nodiscard]] int patience_ms() const;

  StopSignals& signals_;
  std::optional<std::uint64_t> duration_ns_;
  std::function<void()> stop_, tell_stall_;
  Bears bears_;                 ///< null: none
  std::uint64_t began_ns_ = 0;  ///< 0: not started
  std::uint64_t stopped_ns_ = 0;
  std::uint64_t checked_cpu_ns_ = 0;  ///< CPU time of the thread at the last check; 0: none yet
  std::uint64_t longest_ns_ = 0;
  std::optional<Ended> ended_;
  bool was_cut_off_ = false;
};

/// Messages for the function of on_stall(), and for the closing lines if the output was cut off.
inline constexpr const char* kReaderStalls =
    "the recording is over; waiting for the reader of the stream (another signal cuts it off)";
inline constexpr const char* kCutOff = "the output was cut off before its reader had read it all";
inline constexpr const char* kCutOffFix = "write to a file with --output";

// Waits while the kernel records: for full rings, the target's end, the timeout, or Ctrl-C.

/// Reports when all of a set of processes and threads have ended.
class TargetWatch {
 public:
  TargetWatch(const std::vector<pid_t>& processes, const std::vector<pid_t>& threads);
  /// Returns false while any of them runs, and always if the set was empty.
  bool all_ended();
  /// Returns descriptors to poll(2), so that the caller notices ends early.
  [[nodiscard]] std::vector<int> fds() const;

 private:
  struct Watched {
    pid_t tid;
    Fd pidfd;  ///< none for single threads and on kernels before 5.3
  };
  std::vector<Watched> running_;
  bool has_targets_;
};

/// The events that end a recording, and the descriptors that wake us meanwhile.
struct WatchRequest {
  Ending& ending;
  Child* child;  ///< null: no command
  TargetWatch& targets;
  const std::vector<int>& ring_fds;
  int reader_fd;  ///< the stream's output, if that is a pipe; -1: no reader can go away
};

/// Calls `on_wake` when a ring wakes us, and at least four times a second.  When the recording
/// ends, calls Ending::stop() and returns the reason.  `on_wake` may return within how many
/// nanoseconds it must be called again.
Ended watch(const WatchRequest& request,
            const std::function<std::optional<std::uint64_t>()>& on_wake);

/// Returns the exit status after a complete recording: the command's own if it ended before the
/// recording or by the same Ctrl-C, else 0.  Terminates a command that still runs, and calls `say`
/// before it kills the command.
int end_status(Child* child, Ended ended, const std::function<void(const std::string&)>& say);

/// Returns the exit status after the output was cut off: the stream is incomplete.
int cut_off_status(const Child* child);

}  // namespace pe::recording
