// Shows one line on a terminal that changes once a second.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>

#include "base/io/output.h"

namespace pe {

class Progress {
 public:
  /// Shows nothing unless `err` is a terminal, and nothing if `quiet`.
  Progress(Output& err, bool quiet) : err_(err), is_shown_(!quiet && err.is_terminal()) {}

  /// Calls `text()` for the line, at most once a second.
  template <typename Text>
  void show(Text&& text) {
    if (!is_shown_)
      return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(1))
      return;
    last_ = now;
    write(text());
  }

  /// Erases the line, so that the next message has a line of its own.
  void clear() {
    if (is_shown_)
      write({});
  }

 private:
  void write(const std::string& line) {
    err_.write("\r" + line + "\033[K");
    err_.flush();
  }

  Output& err_;
  bool is_shown_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace pe
