// Writes the records of an engine of ours into its ring.  They are laid out like the kernel's, so
// that all later steps are the same.  From /proc it also writes the records about processes that
// the kernel would have written.
//
// A process's mappings are read when a sample's instruction is outside of all known mappings, or
// when their total size has changed, as when a library is loaded.  They are also read again after
// kRereadNs.  That takes at most a twentieth of a CPU, a hundredth if nothing has changed, and
// 20 ms of CPU time at once.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "languages/common/script_reader.h"
#include "recording/counters/counter.h"
#include "recording/counters/counters.h"
#include "recording/request.h"
#include "recording/stream/synthesize.h"
#include "stream/history.h"

// The ring between the thread of an engine of ours, which writes records (engine_records.h), and
// the main thread, where Drain reads them.
//
// The engine must never wait for the main thread: the reader of the stream may have stopped
// reading, and the target may be stopped meanwhile.  So records that find no room are dropped and
// counted.

// Writes records to a ring of our own memory (counter.h), as the kernel does to a counter's.  One
// thread writes; it never waits for the reader.

namespace pe::stream {

class RingWriter {
 public:
  /// `ring`, from Ring::allocate(), must outlive this.  It may be moved.
  explicit RingWriter(const Ring& ring) noexcept
      : page_(static_cast<perf_event_mmap_page*>(ring.map_)),
        data_(static_cast<std::byte*>(ring.map_) + ring.data_offset_),
        ring_bytes_(ring.map_bytes_ - ring.data_offset_) {}

  [[nodiscard]] std::size_t ring_bytes() const noexcept { return ring_bytes_; }
  /// Returns how many more bytes can be added.
  [[nodiscard]] std::size_t room() const noexcept {
    return ring_bytes_ -
           static_cast<std::size_t>(
               head_ - std::atomic_ref(page_->data_tail).load(std::memory_order_acquire));
  }
  /// Adds bytes of a record; there must be room.  A record's size is a multiple of eight.
  void add(Bytes bytes) noexcept {
    const std::size_t offset = head_ & (ring_bytes_ - 1);
    const std::size_t first = std::min(bytes.size(), ring_bytes_ - offset);
    std::memcpy(data_ + offset, bytes.data(), first);
    if (first < bytes.size())
      std::memcpy(data_, bytes.data() + first, bytes.size() - first);
    head_ += bytes.size();
  }
  /// Makes the added records visible to the reader, all at once.
  void publish() noexcept {
    std::atomic_ref(page_->data_head).store(head_, std::memory_order_release);
  }

 private:
  perf_event_mmap_page* page_;
  std::byte* data_;
  std::size_t ring_bytes_;
  std::uint64_t head_ = 0;
};

}  // namespace pe::stream

namespace pe::recording {

class EngineRing {
 public:
  static constexpr std::size_t kMostBytes = 256UL * 1024 * 1024;

  /// Throws Error.
  explicit EngineRing(std::size_t bytes = kMostBytes);

  // The engine's thread.
  /// Writes records that belong together.  Returns false if they find no room.  Samples leave some
  /// room for the few other records.
  bool write(Bytes records, bool is_sample);
  /// Counts records that will never be written.
  void add_lost(std::uint64_t count) noexcept { lost_ += count; }
  /// All records that are older than `time_ns` have been written.  Engines that write records in
  /// order of time need not call it.
  void complete_until(std::uint64_t time_ns) noexcept { complete_ns_ = time_ns; }
  /// Sampling cannot continue: the next call of check() throws `why`.
  void fail(std::exception_ptr why) noexcept;

  // The main thread.
  /// Readable if there are new records.
  [[nodiscard]] int fd() const noexcept { return wakes_.get(); }
  /// Call this before reading.  Throws the exception given to fail().
  void check();
  /// Returns the time given to complete_until().  Call this before reading the rings.
  [[nodiscard]] std::uint64_t complete_ns() const noexcept { return complete_ns_; }
  /// For Drain.
  [[nodiscard]] std::vector<stream::Ring>& rings() noexcept { return rings_; }

  /// Returns the number of lost records.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  void wake() noexcept;

  std::vector<stream::Ring> rings_;  ///< one
  stream::RingWriter writer_;
  Fd wakes_;
  std::atomic<bool> has_woken_ = false;
  std::atomic<std::uint64_t> lost_ = 0;
  std::atomic<std::uint64_t> complete_ns_ = std::numeric_limits<std::uint64_t>::max();
  std::exception_ptr failure_;  ///< valid if has_failed_
  std::atomic<bool> has_failed_ = false;
};

/// Returns the event of such samples, for write_head().  Adds a line to `notes` for each difference
/// from the request.
OpenedEvent engine_event(const Request& request, std::vector<std::string>& notes);

/// A thread at one moment: its registers, and a copy of its stack.
struct CopiedSample {
  static constexpr std::size_t kInstructionPointer = 16;

  pid_t pid = 0, tid = 0;
  std::uint32_t cpu = 0;
  std::uint64_t time_ns = 0;    ///< CLOCK_MONOTONIC
  std::uint64_t period_ns = 0;  ///< the thread's time that it represents
  bool is_64_bit = true;        ///< otherwise only the instruction's address is useful
  /// By DWARF number (System V ABI AMD64, figure 3.36); the last is the instruction's address.
  std::array<std::uint64_t, 17> registers = {};
  Bytes stack = {};  ///< from the stack pointer up, as far as it could be read
  /// Registers and stack as a record contains them, if the target has written that record.  Of
  /// `registers` only the instruction's address is used then.
  Bytes user_part = {};
  std::string_view name = {};  ///< the thread's name at that time; empty: /proc may have it
  const languages::ScriptFrames* script = nullptr;  ///< its stack in an interpreter; null: none
};

/// The process that starts, or starts another program, and what the engine knows of it.
struct StartedProcess {
  pid_t pid = 0;
  std::uint64_t time_ns = 0;
  std::string_view name = {};  ///< empty: /proc has it
  std::string_view maps = {};  ///< text of /proc/PID/maps, untrusted; empty: /proc has it
  /// The inode of memory that only this program has mapped.  If /proc/PID/maps lacks it, another
  /// program runs there.  0: not needed.
  std::uint64_t own_inode = 0;
};

class EngineRecords {
 public:
  /// All arguments must outlive this.
  EngineRecords(EngineRing& ring, const OpenedEvent& event);

  /// From now on finds the interpreters of processes, for samples with stacks of them.
  /// Also recognises moved text.
  void read_scripts(Budget& budget);
  /// Null without read_scripts().
  [[nodiscard]] languages::ScriptReader* scripts() noexcept {
    return scripts_ ? &*scripts_ : nullptr;
  }

  void sample(const CopiedSample& sample);
  /// A process will be sampled: reads its mappings, and examines the files of interpreters.  That
  /// can take 50 ms, for which no thread should wait.
  void expect(pid_t pid);
  /// A thread starts, or a process if it is its first thread.  `task` also names the creator.
  void fork(const stream::TaskRecord& task, std::uint64_t time_ns);
  /// A forked process is known to have this name and these mappings.
  void describe(const StartedProcess& process);
  /// A process has started another program, which is in `process`.
  void exec(const StartedProcess& process);
  /// A thread ends, or a process if it is its first thread.
  void exit(pid_t pid, pid_t tid, std::uint64_t time_ns);

  /// Times are untrusted, and later samples may be older, but not older than `time_ns`.  An
  /// impossible time is replaced by the nearest possible one.  Mappings that we find get the oldest
  /// time that their program may have.
  void may_go_back_to(std::uint64_t time_ns) noexcept { oldest_ns_ = time_ns; }

 private:
  struct Process {
    std::uint64_t began_ns = 0;
    std::uint64_t own_inode = 0;
    std::uint64_t pages = 0;         ///< mapped in all, at the last read
    std::uint64_t read_ns = 0;       ///< the time of the last read
    std::uint64_t took_ns = 0;       ///< our CPU time for that
    std::uint64_t next_read_ns = 0;  ///< the earliest time of the next read
  };

  struct ThreadName {
    std::string name;
    std::uint64_t read_ns = 0;
  };

  void set_time(std::uint64_t time_ns);
  void write(Bytes records, bool is_sample);
  void write_loss();
  void write_copied(const CopiedSample& sample);
  void add_script(const CopiedSample& sample);
  void follow_name(const CopiedSample& sample);
  void take_name(pid_t pid, pid_t tid, std::string_view name);
  void follow_maps(const CopiedSample& sample);
  void read_maps(pid_t pid);
  [[nodiscard]] bool is_new(std::uint32_t pid, const stream::MapsLine& map) const;

  EngineRing& ring_;
  const OpenedEvent& event_;
  std::optional<MovedText> moved_text_;  ///< with scripts_, whose reader it uses
  Synthesizer synthesizer_;
  stream::History history_;  ///< of what has been written
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, ThreadName> names_;  ///< by tid
  stream::RecordBuilder builder_;
  std::vector<std::byte> records_;
  std::optional<languages::ScriptReader> scripts_;
  std::uint64_t untold_ = 0;  ///< lost records, since the last that was written
  std::uint64_t now_ns_ = 0;  ///< the time of the records that are written now
  std::optional<std::uint64_t> oldest_ns_;
};

}  // namespace pe::recording
