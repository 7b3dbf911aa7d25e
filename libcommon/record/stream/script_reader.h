// Reads the stacks of interpreters in the recorded processes, and names their functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "objects/image.h"
#include "record/closing.h"
#include "record/stream/script_frames.h"
#include "runtimes/python_process.h"
#include "stream/history.h"
#include "stream/script_mapping.h"

namespace pe::record {

/// Returns whether a file may have an interpreter, by its name.
bool may_be_interpreter(std::string_view path);

class ScriptReader {
 public:
  /// Must be called after each record that `history` has applied, always with the same history.
  void follow(const stream::History& history);

  /// Returns the processes whose interpreter was found or lost since the last call.
  std::set<std::uint32_t> take_changed() { return std::exchange(changed_, {}); }

  /// Returns the interpreter of a process; null if it has none that we know.
  runtimes::PythonProcess* process(std::uint32_t pid);

  /// Is called for a function that the stream does not have yet.
  using OnFunction = std::function<void(std::uint32_t number, const stream::ScriptFunction&)>;
  /// Returns a stack of that process with the addresses of the stream.  Valid until the next call.
  const ScriptStack& name(std::uint32_t pid, const runtimes::PythonStack& stack,
                          const OnFunction& on_function);

  /// Adds what was read, and which interpreters are unknown.
  void describe(Closing& closing) const;

 private:
  struct Process {
    runtimes::PythonProcess python;
    bool has_unreadable = false;  ///< the stream has the function of unreadable frames
  };

  struct Binary {
    std::optional<runtimes::PythonBinary> python;  ///< nullopt: the file has no interpreter
    std::vector<objects::Segment> segments;
  };

  void forget(std::uint32_t pid);
  void open(std::uint32_t pid, const stream::Mapping& mapping);
  const Binary& binary_of(std::uint32_t pid, const stream::Mapping& mapping);

  std::unordered_map<std::uint32_t, Process> processes_;  ///< by pid
  std::unordered_map<const stream::MappedFile*, Binary> binaries_;
  std::set<std::uint32_t> changed_;
  std::set<std::string> unknown_;  ///< interpreters whose frames cannot be read
  std::uint32_t next_number_ = 1;  ///< of functions; 0 is that of unreadable frames
  std::uint64_t frames_ = 0, unreadable_ = 0;
  ScriptStack stack_;
};

}  // namespace pe::record
