// Names the frames of interpreters in the stacks of a heap, and puts them between the native ones.
//
// The names come from the copies that the process has made of its code objects.  They are read as
// those of a live process are (languages/common/script_reader.h), and are untrusted as these.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/budget.h"
#include "languages/common/interpreter.h"
#include "languages/common/script_frames.h"
#include "languages/common/script_reader.h"
#include "malloctrace/heap/heap.h"

namespace pe::malloctrace {

/// Appends native frames to a call chain.  The first address of a chain is that of the instruction
/// itself; all others are return addresses.
void append_chain(std::span<const heap::Frame> frames, std::vector<std::uint64_t>& chain);

class ScriptNames {
 public:
  /// Is called for a function that is new in its process, with its number.
  using OnFunction = std::function<void(std::uint32_t number, const stream::ScriptFunction&)>;
  explicit ScriptNames(OnFunction on_function) : on_function_(std::move(on_function)) {}

  /// The stacks that follow belong to this process.  `heap` must live until the next call.
  void begin_process(pid_t pid, const heap::Heap& heap);
  /// Returns the call chain of a stack with the frames of its scripts, whose addresses are those of
  /// stream/script_mapping.h.  Valid until the next call.
  std::span<const std::uint64_t> chain(const heap::Heap::Stack& stack);

 private:
  using FileKey = std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint64_t>;
  /// An interpreter's file; without an interpreter, `binary` is nullopt.
  struct File {
    std::optional<languages::ScriptBinary> binary;
    std::vector<objects::Segment> segments;
  };

  const File& file_of(const heap::Module& module);
  void find_loop();
  [[nodiscard]] std::size_t read(std::uint64_t avma, std::span<std::byte> into) const;
  std::uint64_t address_of(const heap::Script& script);

  OnFunction on_function_;
  Budget budget_;
  std::map<FileKey, File> files_;
  pid_t pid_ = 0;
  const heap::Heap* heap_ = nullptr;
  std::optional<languages::ScriptProcess> process_;
  std::span<const std::byte> copies_;  ///< of the frame that is being named
  std::vector<languages::CodeRange> loop_;
  std::uint32_t next_number_ = 1;         ///< of functions; 0 is that of unreadable frames
  bool has_unreadable_ = false;           ///< the process has that function
  std::vector<std::uint64_t> addresses_;  ///< of the heap's scripts; 0: not named yet
  std::vector<std::uint64_t> native_;
  languages::ScriptStack stack_;
  languages::ScriptMerger merger_;
};

}  // namespace pe::malloctrace
