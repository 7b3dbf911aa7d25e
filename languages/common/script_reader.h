// Reads the stacks of interpreters in the recorded processes, and names their functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "languages/common/frame.h"
#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/common/memory_reader.h"
#include "languages/common/processes.h"
#include "languages/common/script_frames.h"
#include "languages/registry.h"
#include "objects/image.h"
#include "stream/history.h"
#include "stream/script_mapping.h"

namespace pe::languages {

/// Returns the interpreter of a file with all code of its loop; nullopt if it has none.  A library
/// has one only if its name says so (`has_name`), and a program with any name may have one.
std::optional<ScriptBinary> find_whole_interpreter(const objects::Image& image, bool has_name);

/// A process that runs an interpreter: the stacks of its threads, and the names of its functions.
///
/// Names are read once for each code object.  An address may be reused, also before the names are
/// read, so each frame has a mark of the object that it had at the sample.
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

/// A file with an interpreter.
struct ScriptFile {
  std::uint64_t number = 0;  ///< from 1 on
  ScriptBinary script = {};
  std::vector<objects::Segment> segments = {};
  std::optional<ScriptLayout> layout = {};  ///< nullopt: the file does not have it
};

/// The interpreter of a process.
struct OpenedScript {
  ScriptProcess process;
  std::uint64_t seen_ns = 0;    ///< when the kernel found it before we did
  bool has_unreadable = false;  ///< the stream has the function of unreadable frames
};

/// All processes with an interpreter.
class ScriptReader : private RuntimeProcesses<OpenedScript, ScriptFile> {
 public:
  /// All reading draws on `budget`, which must outlive this.
  explicit ScriptReader(Budget& budget) : RuntimeProcesses(budget, {.most = 100}) {}

  /// Must be called after each record that `history` has applied, always with the same history.
  /// `time_ns` is that record's time.
  void follow(const stream::History& history, std::uint64_t time_ns);

  /// Reads the memory of processes for the thread that uses this.
  [[nodiscard]] MemoryReader& memory() noexcept { return reader(); }

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
  [[nodiscard]] bool wants(std::uint32_t pid, std::string_view path) const override;
  [[nodiscard]] bool has_name(std::string_view path) const override;
  FoundBinary find(const objects::Image& image, bool has_name) override;
  std::variant<OpenedScript, std::string> open(Memory memory, const ScriptFile& binary,
                                               const stream::Mapping& mapping) override;
  [[nodiscard]] std::string advice(const ScriptFile& binary) const override;
  void on_open(std::uint32_t pid) override { changed_.insert(pid); }
  void on_forget(std::uint32_t pid, OpenedScript&& opened) override;
  void start(const stream::MappingChange& change) override;

  [[nodiscard]] const Process* opened(std::uint32_t pid) const;
  OpenedScript* running_or_ended(std::uint32_t pid);
  std::uint32_t number_of(OpenedScript& script, const stream::ScriptFunction& function,
                          const OnFunction& on_function);
  bool fork(std::uint32_t pid, std::uint32_t parent);

  std::uint64_t now_ns_ = 0;                               ///< of the record that is followed
  std::unordered_map<std::uint32_t, OpenedScript> ended_;  ///< by pid
  bool keeps_ended_ = false;
  std::vector<FoundBinary> files_;  ///< by number, from 1 on
  std::vector<File> new_files_;
  std::set<std::uint32_t> changed_;
  std::uint32_t next_number_ = 1;  ///< of functions; 0 is that of unreadable frames
  struct Counts {
    std::uint64_t frames = 0, unreadable = 0;
  };
  std::map<stream::ScriptKind, Counts> counts_;
  ScriptStack stack_;
};

}  // namespace pe::languages
