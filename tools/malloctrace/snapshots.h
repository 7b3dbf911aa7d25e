// Snapshots: each writes the running processes, as they are now, to a file.  One is due at each
// interval, and when SIGUSR1 comes.  All samples of a snapshot have its time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "malloctrace/options.h"
#include "malloctrace/processes.h"

namespace pe::malloctrace {

class Snapshots {
 public:
  using Say = std::function<void(const std::string&)>;

  /// From now on SIGUSR1 does not end this process.  `options` and `processes` must outlive this.
  /// Throws Error.
  Snapshots(const Options& options, const Processes& processes, Say say);
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;
  Snapshots(Snapshots&&) = delete;
  Snapshots& operator=(Snapshots&&) = delete;
  ~Snapshots();

  /// Readable when the signal has come.
  [[nodiscard]] int fd() const noexcept { return signal_.get(); }

  /// The intervals start now.  Times are of CLOCK_MONOTONIC.
  void start(std::uint64_t now_ns);
  /// Writes FILE.1, FILE.2 ... if one is due.  Reports errors; the run goes on.
  void write_due(std::uint64_t now_ns);

 private:
  std::optional<std::uint64_t> due(std::uint64_t now_ns);
  void write(const std::string& path, std::uint64_t time_ns) const;

  const Options& options_;
  const Processes& processes_;
  Say say_;
  Fd signal_;
  std::optional<std::uint64_t> next_ns_;
  unsigned written_ = 0;
};

}  // namespace pe::malloctrace
