// Restores errno: a program with our library in it does not expect a change.
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>

namespace pe::inprocess {

class KeepErrno {
 public:
  KeepErrno() noexcept : value_(errno) {}
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno(KeepErrno&&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  KeepErrno& operator=(KeepErrno&&) = delete;
  ~KeepErrno() { errno = value_; }

 private:
  int value_;
};

}  // namespace pe::inprocess
