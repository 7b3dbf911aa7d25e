// The unwind tables of the files that processes have mapped.
//
// A file is opened when a stack first reaches its code, read once, and closed again.  A malicious
// process may map ever more files, so the work is bounded.  Files beyond kMaxTableBytes have no
// table, and stacks report that they ended in them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "objects/build_id_cache.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"
#include "unwind/architecture.h"
#include "unwind/cfi/unwind_table.h"
#include "unwind/rule.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

class Images {
 public:
  /// The process in which a file was found first pays from `budget`; null: no limits.
  explicit Images(objects::FileMatch match, std::size_t max_table_bytes = kMaxTableBytes,
                  Budget* budget = nullptr)
      : match_(match), budget_(budget), left_bytes_(max_table_bytes) {}

  /// Returns the number of a mapped file.  `pid` is a process in which the file may be found.
  std::uint32_t number_of(const stream::Mapping& mapping, std::uint32_t pid);

  /// Returns nullptr if the file is unavailable, or there is no room left for it.
  UnwindTable* table(std::uint32_t number);

  /// Whether a file has no table because descriptors ran out (ulimit -n) at its last request.
  [[nodiscard]] bool lacked_descriptors(const stream::MappedFile& file) const;

  /// The limit for the sections of all files together.  They take less than 50 MB on a machine with
  /// every compiler installed.
  static constexpr std::size_t kMaxTableBytes = std::size_t{1} << 30;

 private:
  struct Image {
    stream::Mapping mapping;  ///< one of the file's mappings
    pid_t pid;                ///< a process in which the file may be found
    bool is_opened = false;
    bool lacked_descriptors = false;
    std::shared_ptr<UnwindTable> table;
    KeptBytes kept = {};  ///< by the table
  };
  std::shared_ptr<UnwindTable> table_of(const objects::Image& elf, bool& is_new);

  void open(Image& image);

  objects::FileMatch match_;
  Budget* budget_;
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  std::size_t left_bytes_;
  objects::SharedFiles files_{&cache_};
  std::map<std::pair<const stream::MappedFile*, std::uint32_t>, std::uint32_t> numbers_;
  std::map<FileIdentity, std::shared_ptr<UnwindTable>> by_identity_;
  std::vector<Image> images_;
};

// Recognises threads that have run nothing yet, and those whose program is being replaced.  Their
// stacks cannot be walked, and nothing is missing from them.

/// Copies code like CodeSource (address_space.h).
using CodeReader = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

/// Whether a thread is at its first instruction: of a new program, or of the child of clone(2),
/// which has another stack than its parent, and no return address on it.
bool is_at_start(const architecture::Registers& registers, const CodeReader& code);

/// Whether a thread is in a system call, by the registers that it had in its program.
bool is_in_system_call(const architecture::Registers& registers);

// Code that runtimes have made in their processes, and that they describe themselves: compiled
// methods, interpreters, stubs.

class RuntimeCode {
 public:
  RuntimeCode() = default;
  RuntimeCode(const RuntimeCode&) = delete;
  RuntimeCode& operator=(const RuntimeCode&) = delete;
  RuntimeCode(RuntimeCode&&) = delete;
  RuntimeCode& operator=(RuntimeCode&&) = delete;
  virtual ~RuntimeCode() = default;

  /// Whether the process has a runtime.
  virtual bool is_in(std::uint32_t pid) = 0;
  /// Returns the rule of an instruction; nullopt if it is not a runtime's.
  virtual std::optional<Rule> rule(std::uint32_t pid, std::uint64_t avma) = 0;
  /// Returns whether the rules that rule() has returned are outdated, since the last call. `frames`
  /// are of a stack that was walked by them.
  virtual bool are_outdated(std::uint32_t pid, std::span<const Frame> frames) = 0;
  /// A frame of a stack that was walked.
  struct WalkedFrame {
    Frame frame;
    FrameState state;  ///< without frame pointer (0) if that is unknown
    /// Those of a stack's first frame; null for others.
    const architecture::Registers* registers = nullptr;
  };
  /// Appends what replaces a frame in the call chain, as innermost frames: the innermost first.
  /// Returns false if the frame is not a runtime's.
  virtual bool functions(std::uint32_t pid, const WalkedFrame& walked, const StackView& stack,
                         std::vector<std::uint64_t>& addresses) = 0;
};

}  // namespace pe::unwind
