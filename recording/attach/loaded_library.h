// Loads a library of ours into a process that runs already, and calls its functions there.
//
// The library comes from a sealed memfd of the process itself, so that neither its file system nor
// its mount namespace matters.  It stays loaded, and is found again by the name of that file, which
// has the library's build id.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/fd.h"
#include "recording/attach/borrowed_thread.h"
#include "recording/attach/process_image.h"
#include "recording/attach/safe_point.h"

namespace pe::recording {

class LoadedLibrary {
 public:
  /// Examines the process, and reads the library at `path`.  `name` is shown in the process's maps.
  /// Long waits call `look`, which throws if they must end.  Throws Refused if the process cannot
  /// load it; Error.
  struct Names {
    std::string path, name;
  };
  LoadedLibrary(pid_t pid, const Names& names, Budget& budget, std::function<void()> look);

  /// One visit of the process: a thread is borrowed while it lasts.
  class Visit {
   public:
    /// Loads the library if the process does not have it.  Throws Refused; Error.
    explicit Visit(LoadedLibrary& library);
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    Visit(Visit&&) = delete;
    Visit& operator=(Visit&&) = delete;
    ~Visit();

    /// Calls a function of the library with a copy of `request`, which then has what it has
    /// written.  Returns its result.
    int call(std::string_view function, std::span<std::byte> request);
    /// Takes a descriptor of the process, which it then lacks.
    Fd take(int fd);

   private:
    void load();
    std::string last_error();

    LoadedLibrary& library_;
    std::uint64_t began_ns_;
    BorrowedThread thread_;
  };

  /// Whether the process still runs the program that has loaded it.
  [[nodiscard]] bool is_current() const { return image_.is_current(); }
  /// Lets threads go that were asked to stop and have stopped only now.  To be called now and then.
  void tend() { late_stops_.look(); }
  /// The longest time for which a thread was borrowed.
  [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_; }

 private:
  friend class Visit;

  [[nodiscard]] std::string mapped_path() const;

  pid_t pid_;
  std::string file_name_;
  std::string bytes_;
  std::map<std::string, std::uint64_t, std::less<>> functions_;  ///< svma by name
  ProcessImage image_;
  SafePoint safe_point_;
  LateStops late_stops_{pid_};
  std::function<void()> look_;
  std::uint64_t longest_ns_ = 0;
};

}  // namespace pe::recording
