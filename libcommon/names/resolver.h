// Resolves an address in a process, or in the kernel, to a symbol.
//
// Each module is opened once, and its symbols are read for the first address in
// it.  An unreadable file costs symbols, but never stops the run.  A module is
// a file, not a path: two containers may have different files with one path.
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

#include "base/budget.h"
#include "names/dwarf/inlines.h"
#include "names/jit_dump.h"
#include "names/jit_map.h"
#include "names/module_symbols.h"
#include "objects/build_id_cache.h"
#include "objects/debug_file.h"
#include "objects/mapped_image.h"
#include "stream/proc/kallsyms.h"
#include "stream/proc/process_table.h"
#include "stream/script_mapping.h"
#include "unwind/cfi/unwind_table.h"
#include "unwind/function_ranges.h"

namespace pe::names {

/// The details that are reported for each frame.
struct Detail {
  bool inlined = true;  ///< functions inlined at its address, if debug information has them
  bool lines = false;   ///< source file and line
};

/// One function at an address.
struct Function {
  std::string name;         ///< "main", "libc.so.6+0x2a1b0", "[unknown]"
  std::uint32_t flags = 0;  ///< stream::SymbolFlags
  std::string file = {};    ///< its source file; empty if not requested or not known
  std::uint32_t line = 0;   ///< current line in it; 0 if not requested or not known
};

/// The functions at an address.  There is always at least one; `unnamed` shows whether its name is
/// only a place.
struct Resolved {
  std::vector<Function>
      functions;       ///< the innermost inlined function first; the function with the frame last
  std::string module;  ///< "[kernel.kallsyms]", "[vdso]", or path of the file, perf map or jitdump
  Unnamed unnamed;
  std::uint32_t payer = 0;  ///< the target of Resolver::budget() that pays for the names; 0: none
  std::uint64_t start_svma = 0;  ///< of the function in its file; 0: not known
};

/// The number of lines in symbol files that were malformed or exceeded a limit.
struct SkippedLines {
  std::uint64_t perf_maps = 0;
  std::uint64_t kallsyms = 0;
  std::uint64_t cut_perf_maps = 0;  ///< files that are too large: their ends were not read
  std::uint64_t jit_dumps = 0;      ///< records
  std::uint64_t cut_jit_dumps = 0;
};

/// Returns a text for the closing line such as "3 lines of perf maps not understood" or "1 perf map
/// too large, the end not read"; empty if there are none.
std::string describe(const SkippedLines& skipped);

/// Returns the limits for reading the files of a stream, except root's: 60 s of CPU time, then 10 %
/// of a CPU; half of the memory that this process may have, at most 8 GiB; and 1 GiB of names.  The
/// symbols and debug information of clang, 1.5 GB, take as much memory, and some seconds.
[[nodiscard]] Budget::Limits reading_limits();

class Resolver {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say` receives a message, once for each reason, when a whole class of frames has no symbols.
  /// `search` describes the places of separate debug files.
  /// `limits` are those of reading_limits() if they are empty.
  explicit Resolver(Say say, Detail detail = {}, std::string kallsyms = "/proc/kallsyms",
                    objects::DebugSearch search = {},
                    const std::optional<Budget::Limits>& limits = {});

  /// `mapping` is the mapping at `avma`; null if nothing was mapped.
  Resolved user(std::uint32_t pid, std::uint64_t avma, const stream::Mapping* mapping);

  /// Returns the text of the variable at `avma`, with the offset into it: "g_pool+0x10"; without
  /// symbols the place in its file, "prog+0x4010".  `code` is the nearest mapping of a file below
  /// `avma`: data follows the code of its file.  Returns nullopt for memory of no file.
  std::optional<Function> data(std::uint32_t pid, std::uint64_t avma, const stream::Mapping& code);

  /// Returns the symbol of the code at `svma` of a mapped file; its views live as long as this.
  std::optional<FoundSymbol> symbol(std::uint32_t pid, const stream::Mapping& mapping,
                                    std::uint64_t svma);
  /// Opens the file of a mapping again, for its contents.  Two files with the same file_key() have
  /// the same contents.
  objects::OpenResult open_again(std::uint32_t pid, const stream::Mapping& mapping);
  std::pair<const stream::MappedFile*, std::uint32_t> file_key(std::uint32_t pid,
                                                               const stream::Mapping& mapping) {
    return files_.query(pid, mapping).key();
  }
  /// Returns the functions of the file of a mapping; valid as long as this.
  const unwind::FunctionRanges& ranges(std::uint32_t pid, const stream::Mapping& mapping) {
    return ranges_of(module_of(pid, mapping), pid, mapping);
  }
  /// Returns who pays for the contents of a file of that owner.
  Spender new_payer(uid_t owner);

  /// `recorded_start` is the start of the kernel in the recording; 0 if it is not recorded.
  Resolved kernel(std::uint64_t address, std::uint64_t recorded_start);

  /// The recording has reached this time (CLOCK_MONOTONIC; 0: of another clock) of a system with
  /// that boot_number() (0: unknown).  A process that started later has only the same PID.
  void reach(std::uint64_t boot, std::uint64_t time_ns) noexcept {
    boot_ = boot;
    time_ns_ = time_ns;
  }
  /// Call this when code without a file was mapped into the process.  It finds the
  /// owner and the path of the process's perf map while the process still exists.
  void expect_jit(std::uint32_t pid);
  /// Call this when the process has mapped `path`.  If that is a jitdump, its symbols are used from
  /// now on.
  void expect_jit_dump(std::uint32_t pid, const std::string& path);
  /// Advances the symbols of the process's jitdump to `time_ns`, CLOCK_MONOTONIC, and those of its
  /// perf map to the present.  `on_change` receives ranges with looked-up addresses whose symbols
  /// have changed.
  void advance_jit(std::uint32_t pid, std::uint64_t time_ns, const OnCodeChange& on_change);
  /// Returns the unwind table of the run-time code at `avma`, from the process's jitdump at the
  /// time reached; null if it has none.  Valid until the next call of this or advance_jit().
  unwind::UnwindTable* jit_table(std::uint32_t pid, std::uint64_t avma);
  /// Whether unwind tables have changed since the last call.
  bool has_other_jit_tables(std::uint32_t pid);
  /// Call this when another program has reused the PID.
  void forget_jit(std::uint32_t pid);

  /// Returns the number of files accepted by their path alone: no build id was recorded, and their
  /// inode differs from the recorded one.
  [[nodiscard]] unsigned doubtful_files() const noexcept { return doubtful_files_; }

  /// Did Go build the file with that path?  False if the file was not opened.
  [[nodiscard]] bool is_go(std::string_view path) const { return go_files_.contains(path); }

  /// Limits the cost of reading files.  Targets below kFirstFile are processes.
  [[nodiscard]] Budget& budget() noexcept { return budget_; }
  static constexpr std::uint32_t kFirstFile = 1U << 30;

  /// Returns the skipped lines of all files read so far.
  [[nodiscard]] SkippedLines skipped_lines() const;

 private:
  struct Module {
    Spender payer;   ///< of what reads the file; all that follows may use it
    KeptBytes kept;  ///< of the symbols
    bool is_free = false;
    std::uint32_t target = 0;  ///< of the budget
    std::unique_ptr<ModuleSymbols> symbols;
    std::unique_ptr<Inlines> inlines;  ///< null: not wanted, or no debug information
    /// The names of `inlines`, by the place of their linkage name in memory.
    std::unordered_map<const char*, std::string> demangled;
    bool is_stripped = false;                      ///< except for exported symbols
    std::optional<unwind::FunctionRanges> ranges;  ///< once needed
    /// The starts of other functions after symbols without a size, by their svma.
    std::map<std::uint64_t, std::vector<std::uint64_t>> starts_after = {};
    std::unique_ptr<ModuleSymbols> data;  ///< its variables, once needed
    bool is_library = false;
    pid_t tried_pid = 0;  ///< the process of the last attempt
    unsigned attempts = 0;
  };
  struct Jit {
    std::string path;   ///< of the perf map
    pid_t root_of = 0;  ///< process whose root it is below; 0: our root, the process has ended
    uid_t owner = 0;
    Spender payer = {};
    bool is_opened = false;
    bool is_checked = false;           ///< that the process is the recorded one
    std::unique_ptr<JitMapFile> file;  ///< null: there is no readable perf map
    std::unique_ptr<JitDump> dump;     ///< null: there is no readable jitdump
    std::string dump_path;             ///< path that the process uses
    std::set<std::uint64_t> asked;     ///< addresses looked up
    /// By start of the function; null: the dump has no readable table.
    std::map<std::uint64_t, std::unique_ptr<unwind::UnwindTable>> tables = {};
    bool has_other_tables = false;
  };

  Jit of_ended(std::uint32_t pid);
  void forget_process(Jit& jit, std::uint32_t pid);
  Spender payer_of(std::uint32_t target, uid_t owner);
  static void open_dump(Jit& jit, const std::string& path);
  void check_process(Jit& jit, std::uint32_t pid);
  static void add_skipped(const Jit& jit, SkippedLines& to);
  [[nodiscard]] Resolved script(const stream::ScriptFunction& function, std::uint64_t lines) const;
  using SharedModule = std::shared_ptr<Module>;
  Module& module_of(std::uint32_t pid, const stream::Mapping& mapping);
  SharedModule open(SharedModule module, pid_t pid, const stream::Mapping& mapping);
  std::optional<std::uint64_t> start_in_stripped(Module& module, std::uint32_t pid,
                                                 const stream::Mapping& mapping,
                                                 std::optional<std::uint64_t> svma);
  const unwind::FunctionRanges& ranges_of(Module& module, std::uint32_t pid,
                                          const stream::Mapping& mapping);
  std::optional<std::uint64_t> start_after(Module& module, std::uint32_t pid,
                                           const stream::Mapping& mapping,
                                           const FoundSymbol& symbol);
  void read(Module& module, objects::OpenResult opened, const std::string& path);
  void report_refused(const stream::MappedFile& file);
  static void give_up(Module& module);
  Resolved resolve(Module& module, std::uint32_t pid, std::uint64_t avma,
                   const stream::Mapping& mapping);
  std::vector<Function> functions_at(Module& module, std::uint64_t svma) const;
  static std::unique_ptr<unwind::UnwindTable> table_of(const JitFrames& frames);
  Resolved jit(std::uint32_t pid, std::uint64_t avma);
  static Resolved from_perf_map(Jit& jit, std::uint32_t pid, std::uint64_t avma);
  void load_kernel(std::uint64_t recorded_start);

  Say say_;
  Detail detail_;
  std::string kallsyms_;  ///< path
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  std::unordered_map<std::uint32_t, uid_t> owners_;  ///< of the budget's targets
  Budget budget_;                                    ///< must outlive modules_, as the next
  objects::DebugFinder debug_files_;
  objects::SharedFiles files_{&cache_};
  std::map<std::pair<const stream::MappedFile*, std::uint32_t>, SharedModule> modules_;
  /// Opened modules.  Two files with one build id are two modules: its author chooses a build id.
  std::map<FileIdentity, SharedModule> by_identity_;
  std::set<const stream::MappedFile*> refused_;  ///< because their build id differs
  unsigned doubtful_files_ = 0;
  std::set<std::string, std::less<>> go_files_;
  std::uint64_t boot_ = 0, time_ns_ = 0;  ///< of the recording
  std::unordered_map<std::uint32_t, Jit> jits_;
  SkippedLines skipped_of_forgotten_;  ///< of perf maps and jitdumps that are no longer in jits_
  std::optional<stream::Kallsyms> kernel_;
  std::optional<Unnamed> kernel_missing_;  ///< why kernel_ is empty, once load_kernel() was called
};

}  // namespace pe::names
