// Debug files from debuginfod servers, which give them out by build id.
//
// Only if DEBUGINFOD_URLS names servers: whoever sets it wants their help and lets them see
// which programs run here.  libdebuginfod keeps what it gets, and for some minutes what is missing,
// in its cache (~/.cache/debuginfod_client).  It is loaded when it is first needed: with it come 30
// libraries, which take 3 ms of every start.
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
  /// A transfer that makes no progress for so long is given up; looked at every second.
  std::chrono::milliseconds patience{std::chrono::seconds(20)};
  /// What one file may take in all, however steadily it comes; a server may send without end.
  std::chrono::milliseconds most_time{std::chrono::minutes(10)};
  std::uint64_t most_bytes = std::uint64_t{4} << 30;
  /// Called about once a second, and at the end of a transfer, with bytes; `of_bytes` is 0 while it
  /// is not known.  Newer libraries (elfutils 0.192) call it only once a server has answered.
  /// Empty: nobody wants to know.
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

  /// The path, in the cache, of the debug file of that build id; nullopt if no server has it, or
  /// answered.  It is to be checked like any other.  For objects::DebugSearch::fetch.
  std::optional<std::string> debug_file(Bytes build_id);

  /// Files had so far, from servers or the cache.
  [[nodiscard]] std::uint64_t found() const noexcept { return found_; }
  /// Asked for, and no server has them.
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }
  /// Asked for in vain, because servers could not be reached or were too slow.
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
  /// Servers are not asked any more: several requests in a row failed.
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
