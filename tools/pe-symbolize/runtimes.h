// Advice for programs whose functions a runtime compiles or interprets: how to get their symbols.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "names/resolver.h"
#include "stream/proc/process_table.h"

namespace pe::symbolize {

/// A runtime, recognised by the mappings of its processes.
struct Runtime {
  std::string_view file;         ///< the start of the name of a mapped file
  std::string_view interpreter;  ///< a function that represents the program's own; empty: none
  std::string_view name;         ///< "Python"
  std::string_view versions;     ///< those that the recorders can name
  std::string_view start;        ///< how to get names from the program itself; "%": its process
};

/// The kind of recorder of a stream.  The advice about missing names depends on it.
enum class Recorder : std::uint8_t { kOfSamples, kOfWaits, kOfAllocations };

/// Finds the runtimes that hid symbols.
class RuntimeAdvice {
 public:
  /// Handles a resolved address of a process.  `space` has the mappings of the process; null if
  /// they are unknown.
  void see(std::uint32_t pid, const stream::AddressSpace* space, const names::Resolved& resolved);

  /// Returns a line for each runtime that hid symbols.
  [[nodiscard]] std::vector<std::string> lines(Recorder recorder) const;

 private:
  struct Process {
    const Runtime* runtime = nullptr;
    std::string file;  ///< by whose name the runtime was recognised
    bool lacks_names = false, is_interpreted = false, has_map = false;
  };
  /// Returns what a process has of its runtime.
  static Process process_of(const stream::AddressSpace& space);
  /// Returns the advice for a process that has a runtime.
  static std::string advice_for(std::uint32_t pid, const Process& process, Recorder recorder);
  std::map<std::uint32_t, Process> processes_;
};

}  // namespace pe::symbolize
