// A process that runs an interpreter: the stacks of its threads, and the names of its functions.
//
// Names are read once for each code object.  An address may be reused, also before the names are
// read, so each frame has a mark of the object that it had at the sample.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/binary.h"
#include "languages/common/code.h"
#include "languages/common/frame.h"
#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "stream/script_mapping.h"

namespace pe::languages {

class ScriptProcess {
 public:
  /// Reads the layout of an interpreter.  `bias` is the distance from the file's svma to avma.
  /// Returns why its frames cannot be read: "Python 3.10"; empty if the process is gone.
  static std::variant<ScriptProcess, std::string> open(Memory memory, const ScriptBinary& binary,
                                                       std::uint64_t bias);
  /// The interpreter of a file with a known layout; reads nothing yet.
  ScriptProcess(Memory memory, const ScriptLayout& layout, const ScriptBinary& binary,
                std::uint64_t bias);
  /// Returns the interpreter of a child that this process forks.  Names that the child's memory
  /// lacks, because it has ended, are read from this process: its functions are at the same
  /// addresses.
  [[nodiscard]] ScriptProcess fork(Memory memory) const;
  /// The process has ended, or runs another program.
  void end() { memory_->end(); }

  /// Reads the stack of a thread, which should be stopped; without frames if it runs no function of
  /// the interpreter.  ScriptThread::runtime is unused.  Valid until the next call.
  const ScriptFrames& read_stack(pid_t tid, ScriptThread thread);

  /// Is called for a new function, and returns its number.
  using OnNew = std::function<std::uint32_t(const stream::ScriptFunction&)>;
  /// A sample's names are read from now on: the process has run since those of the last one.
  void begin_names();
  /// Returns the address of a frame in the stream, as of an innermost frame
  /// (stream/script_mapping.h); 0 if it is not shown (ScriptCode::is_hidden); nullopt if its code
  /// object is unreadable, or gone since the sample, or if the process has spent its share of the
  /// budget.
  std::optional<std::uint64_t> address_of(const ScriptFrame& frame, const OnNew& on_new);

  /// The code of the interpreter's loop, in avma.
  [[nodiscard]] std::span<const ScriptBinary::Range> loop() const noexcept { return loop_; }
  [[nodiscard]] const ScriptLayout& layout() const noexcept { return layout_; }
  /// Pays for its reading.
  [[nodiscard]] Spender& spender() noexcept { return memory_->spender(); }
  /// Avma of the interpreter's state.
  [[nodiscard]] std::uint64_t runtime() const noexcept { return runtime_; }

 private:
  struct Code {
    std::uint32_t first_line = 0;
    LineTable lines;
    bool has_line_places = false;
    bool is_hidden = false;
    std::uint64_t address = 0;  ///< in the stream; 0: unreadable, or hidden
    std::uint32_t tries = 0;    ///< how often it was unreadable
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

  bool may_read();
  Code* read_new(const CodeId& id, const ScriptFrame& frame, const OnNew& on_new);
  Code read_code(const ScriptFrame& frame, const OnNew& on_new);
  std::optional<ScriptCode> find_code(const ScriptFrame& frame);

  std::shared_ptr<Memory> memory_;
  std::vector<std::shared_ptr<Memory>> ancestors_;  ///< that of the parent first
  ScriptLayout layout_;
  std::uint64_t runtime_;
  std::vector<ScriptBinary::Range> loop_;
  std::unordered_map<pid_t, std::uint64_t> threads_;  ///< by tid: see walk_script()
  KeptBytes kept_;                                    ///< in the next two
  std::unordered_map<CodeId, Code, HashOfCode> codes_;
  /// Functions by stream::script_path(): their addresses in the stream.  Closures of one function,
  /// and those of a server's requests, are different code objects.
  std::unordered_map<std::string, std::uint64_t> functions_;
  ScriptFrames stack_;
  std::optional<bool> may_read_;  ///< in this sample; nullopt: it has read nothing yet
};

}  // namespace pe::languages
