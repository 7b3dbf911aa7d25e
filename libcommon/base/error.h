// Errors that end the run.
//
// A library function throws Error when the tool cannot go on; run() is
// the only place that catches it.  Bad input that a tool can step over is not
// an Error: parsers return std::optional or an enum, and the caller counts.
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace pe {

/// Worded for the user as "<subject>: <problem>", without the tool's name.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command line itself is wrong; the tool exits 2 and points at --help.
class UsageError : public Error {
  using Error::Error;
};

/// The reader of our output went away (EPIPE).  Not worth a message.
class BrokenPipe : public Error {
  using Error::Error;
};

/// A command that we were to run could not be started; ends with the status
/// that env(1) and timeout(1) use: 126 cannot execute, 127 not found.
class CommandError : public Error {
 public:
  CommandError(const std::string& what, int status) : Error(what), status_(status) {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

/// Throws Error("<subject>: <strerror(code)>").  Pass errno explicitly, read
/// right after the failing call, so that nothing in between can change it.
[[noreturn]] void throw_errno(std::string_view subject, int code);

/// strerror(code), as a value.
std::string errno_text(int code);

}  // namespace pe
