// From an address in a process, or in the kernel, to a name.
//
// Each module is opened once and its symbols are read when the first address
// falls into it.  What cannot be read costs names, never the run.  A module is
// a file, not a path: two containers may have different files of one path.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "names/dwarf/inlines.h"
#include "names/jit_dump.h"
#include "names/jit_map.h"
#include "names/module_symbols.h"
#include "names/unnamed.h"
#include "objects/build_id_cache.h"
#include "objects/debug_file.h"
#include "stream/proc/kallsyms.h"
#include "stream/proc/process_table.h"
#include "unwind/cfi/unwind_table.h"
#include "unwind/function_ranges.h"

namespace pe::names {

/// What is told of each frame.
struct Detail {
  bool inlined = true;  ///< functions inlined at its address, where debug information tells
  bool lines = false;   ///< source file and line
};

/// One function at an address.
struct Function {
  std::string name;         ///< "main", "libc.so.6+0x2a1b0", "[unknown]"
  std::uint32_t flags = 0;  ///< stream::SymbolFlags
  std::string file = {};    ///< of its source; empty where not asked for, or not known
  std::uint32_t line = 0;   ///< where control is in it; 0 likewise
};

/// What stands at an address.  There is always something to show; `unnamed` tells when it is only a
/// place.
struct Resolved {
  std::vector<Function>
      functions;  ///< the innermost inlined one first; the one that has a frame last
  std::string
      module;  ///< path of the file, "[kernel.kallsyms]", "[vdso]", or the perf map's or jitdump's
  Unnamed unnamed;
};

/// Lines of symbol files that were not understood, or too many.
struct SkippedLines {
  std::uint64_t perf_maps = 0;
  std::uint64_t kallsyms = 0;
  std::uint64_t cut_perf_maps = 0;  ///< files that are too large: their end was not read
  std::uint64_t jit_dumps = 0;      ///< records
  std::uint64_t cut_jit_dumps = 0;
};

/// "3 lines of perf maps not understood", "1 perf map too large, the end not read", for the closing
/// line; empty if there are none.
std::string describe(const SkippedLines& skipped);

class Resolver {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say` hears, once each, of what is missing for a whole class of frames.
  /// `search`: where separate debug files are.
  explicit Resolver(Say say, Detail detail = {}, std::string kallsyms = "/proc/kallsyms",
                    objects::DebugSearch search = {})
      : say_(std::move(say)),
        detail_(detail),
        kallsyms_(std::move(kallsyms)),
        debug_files_(std::move(search)) {}

  /// `mapping` is what was mapped at `avma`; null if nothing was.
  Resolved user(std::uint32_t pid, std::uint64_t avma, const stream::Mapping* mapping);

  /// `recorded_start` is where the recording's kernel begins; 0 if it does not say.
  Resolved kernel(std::uint64_t address, std::uint64_t recorded_start);

  /// Code without a file was mapped into the process: whom its perf map must
  /// belong to, and what it is called, is asked while the process is there.
  void expect_jit(std::uint32_t pid);
  /// The process has mapped `path`: if that is a jitdump, its names count from now on.
  void expect_jit_dump(std::uint32_t pid, const std::string& path);
  /// Brings the names of the process's jitdump to a moment, in CLOCK_MONOTONIC, and those of its
  /// perf map to this one.  `on_change` hears of ranges that were asked about and are called
  /// something else now.
  void advance_jit(std::uint32_t pid, std::uint64_t time_ns, const OnCodeChange& on_change);
  /// The unwind table of code made at run time, by avma, as the process's jitdump has it at the
  /// moment reached; null if it has none.  Lives until the next call of this or advance_jit().
  unwind::UnwindTable* jit_table(std::uint32_t pid, std::uint64_t avma);
  /// Whether tables have changed since this was last asked.
  bool has_other_jit_tables(std::uint32_t pid);
  /// The number belongs to another program now.
  void forget_jit(std::uint32_t pid);

  /// Files that were taken by their name alone: without a build id, and of another inode than the
  /// one that was recorded.
  [[nodiscard]] unsigned doubtful_files() const noexcept { return doubtful_files_; }

  /// Has Go built the file of that path, as far as it was opened?
  [[nodiscard]] bool is_go(std::string_view path) const { return go_files_.contains(path); }

  /// Of all that was read so far.
  [[nodiscard]] SkippedLines skipped_lines() const;

 private:
  struct Module {
    std::unique_ptr<ModuleSymbols> symbols;
    std::unique_ptr<Inlines> inlines;              ///< null: not wanted, or no debug information
    bool is_stripped = false;                      ///< but for what it exports
    std::optional<unwind::FunctionRanges> ranges;  ///< of a stripped file, once it was asked for
    bool is_library = false;
    std::uint32_t tried_pid = 0;  ///< where it was last looked for
    unsigned attempts = 0;
  };
  struct Jit {
    std::string path;   ///< of the perf map
    pid_t root_of = 0;  ///< below whose root it is; 0: ours, for the process has ended
    uid_t owner = 0;
    bool is_opened = false;
    std::unique_ptr<JitMapFile> file;  ///< null: there is none that we may read
    std::unique_ptr<JitDump> dump;     ///< the same
    std::string dump_path;             ///< as the process calls it
    std::set<std::uint64_t> asked;     ///< addresses looked up
    /// By start of the function; null: the dump has none that can be read.
    std::map<std::uint64_t, std::unique_ptr<unwind::UnwindTable>> tables = {};
    bool has_other_tables = false;
  };

  static void add_skipped(const Jit& jit, SkippedLines& to);
  Module& module_of(std::uint32_t pid, const stream::Mapping& mapping);
  std::string place_name(Module& module, std::uint32_t pid, const stream::Mapping& mapping,
                         std::uint64_t file_offset) const;
  void open(Module& module, std::uint32_t pid, const stream::Mapping& mapping);
  void say_refused(const stream::MappedFile& file);
  std::vector<Function> functions_at(Module& module, std::uint64_t svma) const;
  static std::unique_ptr<unwind::UnwindTable> table_of(const JitFrames& frames);
  Resolved jit(std::uint32_t pid, std::uint64_t avma);
  static Resolved from_perf_map(Jit& jit, std::uint32_t pid, std::uint64_t avma);
  void load_kernel(std::uint64_t recorded_start);

  Say say_;
  Detail detail_;
  std::string kallsyms_;  ///< path
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  objects::DebugFinder debug_files_;  ///< must outlive modules_
  std::unordered_map<const stream::MappedFile*, std::shared_ptr<Module>> modules_;
  std::unordered_map<std::string, std::shared_ptr<Module>> by_build_id_;  ///< those opened
  unsigned refused_ = 0;  ///< files told of whose build id differs
  unsigned doubtful_files_ = 0;
  std::set<std::string, std::less<>> go_files_;
  std::unordered_map<std::uint32_t, Jit> jits_;
  SkippedLines skipped_of_forgotten_;  ///< of perf maps that are no longer in jits_
  std::optional<stream::Kallsyms> kernel_;
  std::optional<Unnamed>
      kernel_missing_;  ///< why there is no kernel_, once load_kernel() was called
};

}  // namespace pe::names
