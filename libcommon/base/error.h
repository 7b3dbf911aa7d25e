// Errors that end the run.
//
// A library function throws Error when the tool cannot continue.  Only run_as() catches it.  Bad
// input that a tool can skip is not an Error: parsers return std::optional or an enum, and the
// caller counts it.
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

/// The command line is wrong; the tool exits with status 2 and refers to --help.
class UsageError : public Error {
  using Error::Error;
};

/// The reader of our output closed the pipe (EPIPE).  The tool prints no message.
class BrokenPipe : public Error {
  using Error::Error;
};

/// The tool could not start the user's command.  It exits with the status that env(1) and
/// timeout(1) use: 126 cannot execute, 127 not found.
class CommandError : public Error {
 public:
  CommandError(const std::string& what, int status) : Error(what), status_(status) {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

/// Throws Error("<subject>: <strerror(code)>").  Callers read errno right after the failing call
/// and pass it, so that no call in between can change it.
[[noreturn]] void throw_errno(std::string_view subject, int code);

/// Returns strerror(code) as a value.
std::string errno_text(int code);

}  // namespace pe
