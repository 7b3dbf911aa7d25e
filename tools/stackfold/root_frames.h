// The root frames of --root: processes, their command lines, and the tree of their ancestors.
//
// A process is one node for its whole life.  Another process with the same PID is another node, so
// children stay below the parent that started them.  Ancestors are shown up to the first one of
// which the stream has a record.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stackfold/folded_counts.h"
#include "stackfold/options.h"
#include "stream/proc/process_table.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"

namespace pe::fold {

/// Returns the text of a process's frame: the words of a stream::CommRecord, joined by blanks, with
/// the program without its folder.  At most 120 characters: "..." replaces those in the middle, and
/// those after the end of a command line that was not recorded as a whole.  Empty if no word is
/// left.
std::string command_text(std::string_view words);

class RootFrames {
 public:
  /// `texts` must outlive this.  `options.roots` is not kNone.
  RootFrames(folded::FrameTable& texts, const Options& options)
      : texts_(texts), roots_(options.roots), ids_(options.root) {}

  /// Follows the processes.  `processes` has applied the record.
  void follow(const stream::Record& record, const stream::ProcessTable& processes);
  /// Returns the root frames of a thread, outermost first.  Valid until the next call.
  std::span<const folded::FrameId> of(std::uint32_t pid, std::uint32_t tid,
                                      const stream::ProcessTable& processes);
  /// Did a child of the process live at `since_ns`, or in the second before, or later?
  [[nodiscard]] bool had_child(std::uint32_t pid, std::uint64_t since_ns) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< of processes, and of frames
  struct Process {
    std::uint32_t parent = kNone;
    folded::FrameId frame = 0;
    folded::FrameId command = kNone;       ///< its text; kNone: unknown
    folded::FrameId next_command = kNone;  ///< likewise, of the next exec
    std::uint32_t children = 0;            ///< those that have not ended
    bool is_known = false;  ///< it has a record; otherwise it is only the parent of another
    bool has_ended = false;
    std::uint64_t child_ended_ns = 0;  ///< the last of the other children
  };

  std::uint32_t number_of(std::uint32_t pid);
  std::uint32_t add(std::uint32_t pid);
  void adopt(std::uint32_t child, std::uint32_t parent);
  void end(std::uint32_t number, std::uint64_t time_ns);
  void name(const stream::CommRecord& named, const stream::ProcessTable& processes);
  void fork(const stream::TaskRecord& task, std::uint64_t time_ns,
            const stream::ProcessTable& processes);
  void set_frame(std::uint32_t number, std::uint32_t pid, const stream::ProcessTable& processes);
  void add_tree(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes);
  void add_thread(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes);

  folded::FrameTable& texts_;
  Roots roots_;
  RootName ids_;
  std::vector<Process> processes_;
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> by_pid_;  ///< the latest of each PID
  /// By pid and tid, until a process or a thread changes: where the frames are in pool_, how many.
  boost::unordered_flat_map<std::uint64_t, std::pair<std::size_t, std::size_t>> known_;
  std::vector<folded::FrameId> pool_;
};

/// Recognises threads that wait for a child (wait(2), vfork(2)), by the functions in their stacks.
class ChildWaits {
 public:
  /// Notes names and the current sample.
  void follow(const stream::Record& record);
  /// Does the current sample wait for a child?
  [[nodiscard]] bool has(const stream::Sample& sample) const;

 private:
  void add_location(const stream::LocationRecord& location);

  using Address = std::pair<std::uint32_t, std::uint64_t>;  ///< with its pid

  // The roles of each function, as bits.
  boost::unordered_flat_map<std::uint64_t, unsigned> symbols_;  ///< by id
  boost::unordered_flat_map<Address, unsigned> addresses_;
  std::uint16_t misc_ = 0;
};

}  // namespace pe::fold
