// Reads the stacks of interpreters in the recorded processes, and names their functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "languages/common/binary.h"
#include "languages/common/frame.h"
#include "languages/common/layout.h"
#include "languages/common/process.h"
#include "languages/common/script_frames.h"
#include "objects/file_identity.h"
#include "objects/image.h"
#include "stream/history.h"
#include "stream/proc/memory.h"
#include "stream/script_mapping.h"

namespace pe::languages {

/// Returns whether a file may have an interpreter, by its name.
bool may_be_interpreter(std::string_view path);

class ScriptReader {
 public:
  /// All reading draws on `budget`, which must outlive this.
  explicit ScriptReader(Budget& budget) : budget_(budget), memory_(budget) {}

  /// Must be called after each record that `history` has applied, always with the same history.
  /// `time_ns` is that record's time.
  void follow(const stream::History& history, std::uint64_t time_ns);

  /// Reads the memory of processes for the thread that uses this.
  [[nodiscard]] stream::MemoryReader& memory() noexcept { return memory_; }

  /// Examines a program before it is started.
  void expect(const std::string& path);
  /// An interpreter of take_files() that the kernel has found in a sample.
  struct Found {
    std::uint32_t pid = 0, parent = 0;  ///< `parent` has forked it; 0: unknown
    std::uint64_t file = 0;             ///< its number
    std::uint64_t runtime = 0;          ///< avma of its state
    std::uint64_t time_ns = 0;          ///< of the sample
  };
  /// The records of the process's start may follow later.
  void see(const Found& found);

  /// A file with an interpreter whose frames can be read.
  struct File {
    std::uint64_t number = 0;             ///< for Found
    std::uint64_t inode = 0, device = 0;  ///< as stat(2) returns them
    std::uint64_t code = 0;               ///< svma of its lowest code
    std::uint64_t code_offset = 0;        ///< where the file has that code
    std::uint64_t runtime = 0;            ///< svma
    ScriptLayout layout = {};
  };
  /// Returns the files that were found since the last call.
  std::vector<File> take_files() { return std::exchange(new_files_, {}); }
  /// Returns the number of the file in which a process's interpreter is; 0 if it has none.
  [[nodiscard]] std::uint64_t file_of(std::uint32_t pid) const;

  /// From now on processes that have ended, or run another program, keep their names until
  /// forget_ended(): their stacks arrive later.
  void keep_ended() noexcept { keeps_ended_ = true; }
  void forget_ended() { ended_.clear(); }

  /// Returns the processes whose interpreter was found or lost since the last call.
  std::set<std::uint32_t> take_changed();

  /// Returns the interpreter of a process; null if it has none that we know.
  ScriptProcess* process(std::uint32_t pid);

  /// Is called for a function that the stream does not have yet.
  using OnFunction = std::function<void(std::uint32_t number, const stream::ScriptFunction&)>;
  /// Returns a stack of that process with the addresses of the stream.  Valid until the next call.
  const ScriptStack& name(std::uint32_t pid, const ScriptFrames& stack,
                          const OnFunction& on_function);

  /// Adds what was read, and which interpreters are unknown.
  void describe(Closing& closing) const;

 private:
  struct Process {
    ScriptProcess script;
    std::uint64_t file = 0;       ///< its number
    std::uint64_t seen_ns = 0;    ///< when the kernel found it before we did
    bool has_unreadable = false;  ///< the stream has the function of unreadable frames
  };

  struct Binary {
    ScriptBinary script;
    std::vector<objects::Segment> segments;
    std::optional<ScriptLayout> layout;  ///< nullopt: the file does not have it
  };

  /// An interpreter whose state could not be read yet.
  struct Pending {
    std::uint64_t file = 0;  ///< its number
    std::uint64_t bias = 0;  ///< from svma to avma
    std::string why;         ///< the last reason of open() of ScriptProcess
    unsigned tries = 0;
  };

  [[nodiscard]] Memory memory_of(std::uint32_t pid);
  void forget(std::uint32_t pid);
  bool try_open(std::uint32_t pid, Pending& pending);
  void retry(std::uint32_t pid);
  void note_unknown(const Pending& pending);
  [[nodiscard]] std::string_view versions_of(const Pending& pending) const;
  Process* running_or_ended(std::uint32_t pid);
  std::uint32_t number_of(Process& process, const stream::ScriptFunction& function,
                          const OnFunction& on_function);
  bool fork(std::uint32_t pid, std::uint32_t parent);
  void open(std::uint32_t pid, const stream::Mapping& mapping);
  std::uint64_t file_of(std::uint32_t pid, const stream::Mapping& mapping);
  std::optional<std::uint64_t> examine(const objects::OpenResult& opened, bool has_name);
  std::uint64_t examine_early(const objects::OpenResult& opened, bool has_name);

  Budget& budget_;
  stream::MemoryReader memory_;                           ///< the processes refer to it
  std::unordered_map<std::uint32_t, Process> processes_;  ///< by pid
  std::unordered_map<std::uint32_t, Process> ended_;      ///< by pid
  bool keeps_ended_ = false;
  /// Mappings whose file the budget did not allow to examine yet, by pid.
  Postponed<stream::Mapping> unexamined_;
  std::unordered_map<std::uint32_t, Pending> pending_;                    ///< by pid
  std::vector<Binary> binaries_;                                          ///< by number, from 1 on
  std::unordered_map<const stream::MappedFile*, std::uint64_t> numbers_;  ///< 0: no interpreter
  /// Numbers of expected files, by what they are and whether their name is an interpreter's.
  std::map<std::pair<FileIdentity, bool>, std::uint64_t> expected_;
  std::vector<File> new_files_;
  std::set<std::uint32_t> changed_;
  /// Interpreters whose frames cannot be read: their names, and the versions that can be read.
  std::map<std::string, std::string_view> unknown_;
  std::set<std::uint32_t> forbidden_;  ///< processes whose memory we may not read
  std::uint32_t next_number_ = 1;      ///< of functions; 0 is that of unreadable frames
  struct Counts {
    std::uint64_t frames = 0, unreadable = 0;
  };
  std::map<stream::ScriptKind, Counts> counts_;
  ScriptStack stack_;
};

}  // namespace pe::languages
