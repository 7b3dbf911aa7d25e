// The trace of a process that ran already: loads the library into it, and leaves it as it was.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "malloctrace/malloctrace.h"
#include "malloctrace/options.h"
#include "recording/session.h"

namespace pe::recording {
class LoadedLibrary;
}

namespace pe::malloctrace {

class Attached {
 public:
  /// Begins to trace the process.  Throws Refused, with the next best command; Error.
  Attached(pid_t pid, const Options& options, recording::Session& session);
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  Attached(Attached&&) = delete;
  Attached& operator=(Attached&&) = delete;
  /// Ends the trace if that has not happened.
  ~Attached();

  /// The memory that the process shares; once.
  [[nodiscard]] Fd take_memory() { return std::move(memory_); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// To be called now and then.
  void tend();
  /// Whether the process has executed another program, which has not the library.
  [[nodiscard]] bool has_another_program() const;

  /// Ends the trace: the memory does not change any more.  Returns why the process cannot be left
  /// as it was; empty if it can, or has ended.
  std::string end();
  /// Returns "attached in 12.3 ms, of which a thread was stopped for 4.5 ms; ...".
  [[nodiscard]] std::string describe() const;
  /// Anonymous memory that the process had when the trace began, in bytes; 0: not known.
  [[nodiscard]] std::uint64_t before_bytes() const noexcept { return before_bytes_; }
  /// By how much that had grown at the end; 0 if it had not, or the process has ended by itself.
  [[nodiscard]] std::uint64_t grown_bytes() const noexcept { return grown_bytes_; }

 private:
  std::string begin(std::string_view settings);
  void release();

  pid_t pid_;
  recording::Session& session_;
  std::unique_ptr<recording::LoadedLibrary> library_;
  Fd memory_;
  std::uint64_t before_bytes_ = 0, grown_bytes_ = 0, took_ns_ = 0, begin_stop_ns_ = 0,
                end_stop_ns_ = 0;
  bool is_over_ = false;
};

}  // namespace pe::malloctrace
