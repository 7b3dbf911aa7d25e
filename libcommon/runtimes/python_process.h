// A process that runs CPython: the stacks of its threads, and the names of its functions.
//
// Names are read once for each code object.  An address may be reused, also before the names are
// read, so each frame has a mark of the object that it had at the sample.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "runtimes/memory.h"
#include "runtimes/python_binary.h"
#include "runtimes/python_code.h"
#include "runtimes/python_layout.h"
#include "runtimes/python_stack.h"
#include "stream/script_mapping.h"

namespace pe::runtimes {

class PythonProcess {
 public:
  /// Reads the layout of an interpreter.  `bias` is the distance from the file's svma to avma.
  /// Returns why its frames cannot be read: "Python 3.10"; empty if the process is gone.
  static std::variant<PythonProcess, std::string> open(Memory::Read read,
                                                       const PythonBinary& binary,
                                                       std::uint64_t bias);
  /// The interpreter of a file with a known layout; reads nothing yet.
  PythonProcess(Memory::Read read, const PythonLayout& layout, const PythonBinary& binary,
                std::uint64_t bias);

  /// Reads the stack of a thread, which should be stopped; without frames if it runs no Python.
  /// `thread_pointer` is its base of the segment FS.  Valid until the next call.
  const PythonStack& read_stack(pid_t tid, std::uint64_t thread_pointer);

  /// Is called for a new function, and returns its number.
  using OnNew = std::function<std::uint32_t(const stream::ScriptFunction&)>;
  /// A sample's names are read from now on: the process has run since those of the last one.
  void begin_names();
  /// Returns the address of a frame in the stream, as of an innermost frame
  /// (stream/script_mapping.h); nullopt if its code object is unreadable, or gone since the sample.
  std::optional<std::uint64_t> address_of(const PythonFrame& frame, const OnNew& on_new);

  /// The code of the interpreter's loop, in avma.
  [[nodiscard]] std::span<const PythonBinary::Range> loop() const noexcept { return loop_; }
  [[nodiscard]] const PythonLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t runtime() const noexcept { return runtime_; }  ///< avma of _PyRuntime

 private:
  struct Code {
    std::uint32_t first_line = 0;
    LineTable lines;
    std::uint64_t address = 0;  ///< in the stream; 0: unreadable
  };
  struct CodeId {
    std::uint64_t avma = 0;
    std::uint32_t mark = 0;
    bool operator==(const CodeId&) const = default;
  };
  struct HashOfCode {
    std::size_t operator()(const CodeId& id) const noexcept {
      return std::hash<std::uint64_t>()(id.avma ^ id.mark);
    }
  };

  Code read_code(const CodeId& id, const OnNew& on_new);

  Memory memory_;
  PythonLayout layout_;
  std::uint64_t runtime_;
  std::vector<PythonBinary::Range> loop_;
  std::unordered_map<pid_t, std::uint64_t> threads_;  ///< by tid: the avma of PyThreadState
  std::unordered_map<CodeId, Code, HashOfCode> codes_;
  PythonStack stack_;
};

}  // namespace pe::runtimes
