// Gets debug files from debuginfod servers, which provide them by build id.
//
// Only if DEBUGINFOD_URLS names servers: a user who sets it wants their help and lets them see
// which programs run here.  libdebuginfod keeps files in its cache (~/.cache/debuginfod_client),
// and remembers missing ones for some minutes.  It is loaded when it is first needed, because it
// brings 30 libraries, which would add 3 ms to every start.
// Sources: debuginfod_find_debuginfo(3), debuginfod-client-config(7).
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/byte_reader.h"

namespace pe::symbolize {

struct DebuginfodSettings {
  /// A transfer without progress for this time is cancelled; checked every second.
  std::chrono::milliseconds patience{std::chrono::seconds(20)};
  /// Limits of one file, however steadily it comes: a server may send without end.
  std::chrono::milliseconds most_time{std::chrono::minutes(10)};
  std::uint64_t most_bytes = std::uint64_t{4} << 30;
  /// Called about once a second, and at the end of a transfer, with the bytes so far; `of_bytes` is
  /// 0 while it is unknown.  Newer libraries (elfutils 0.192) call it only once a server has
  /// answered.  May be empty.
  std::function<void(std::uint64_t bytes, std::uint64_t of_bytes)> progress;
};

class Debuginfod {
 public:
  /// nullptr unless DEBUGINFOD_URLS is set and not empty, and libdebuginfod is installed.
  static std::unique_ptr<Debuginfod> from_environment(DebuginfodSettings settings = {});
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;
  Debuginfod(Debuginfod&&) = delete;
  Debuginfod& operator=(Debuginfod&&) = delete;
  ~Debuginfod();

  /// Returns the path, in the cache, of the debug file of that build id; nullopt if no server has
  /// it or answers.  The caller must check the file like any other.  For
  /// objects::DebugSearch::fetch.
  std::optional<std::string> debug_file(Bytes build_id);

  /// Files received so far, from servers or the cache.
  [[nodiscard]] std::uint64_t found() const noexcept { return found_; }
  /// Requested files that no server has.
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }
  /// Requests that failed because servers could not be reached or were too slow.
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
  /// Whether servers get no more requests, because several in a row have failed.
  [[nodiscard]] bool has_given_up() const noexcept { return failed_in_a_row_ >= kMaxFailures; }

  static constexpr unsigned kMaxFailures = 2;

 private:
  struct Library;

  Debuginfod(std::unique_ptr<Library> library, DebuginfodSettings settings);
  bool may_go_on(std::uint64_t bytes, std::uint64_t of_bytes);

  std::unique_ptr<Library> library_;
  DebuginfodSettings settings_;
  std::chrono::steady_clock::time_point began_, last_progress_;
  std::uint64_t last_bytes_ = 0;
  bool is_cancelled_ = false;
  std::uint64_t found_ = 0, missing_ = 0, failed_ = 0;
  unsigned failed_in_a_row_ = 0;
};

}  // namespace pe::symbolize
