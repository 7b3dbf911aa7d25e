// Reads the memory of other processes, and does not wait for them.
//
// A page of a process may come from another one: by userfaultfd(2), or from a mapped file of a FUSE
// mount, which users may make in a user namespace.  A reader of such a page waits until the other
// answers, perhaps for ever.  Only SIGKILL ends the wait for userfaultfd(2), and nothing that for
// FUSE, if the mount has got the request.  So there are three ways:
//
//   - Pages that are present (proc(5), /proc/PID/pagemap) are read from /proc/PID/mem.  If a page
//     becomes one of userfaultfd meanwhile, that read fails, unlike process_vm_readv(2)
//     (handle_userfault() in fs/userfaultfd.c, without FAULT_FLAG_ALLOW_RETRY; Linux 6.18).
//   - So are others, if the kernel says that they are of no file (Linux 6.11 does).
//   - All other pages are read by a process of our own, which has a deadline (ReadingProcess).
//     They are few: reading memory of no file makes it present.
//   - So is everything if one of the files cannot be opened.
//
// One thing is left: a page of a FUSE mount that is evicted or mapped between check and read, which
// are a microsecond apart.
//
// A read of up to a page takes 2.1 us, process_vm_readv(2) 1.7 us, and opening the files 12 us
// (Linux 6.18).  So they stay open for a while.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/fd.h"

namespace pe::languages {

// A process of our own that reads memory of others for us, so that we need not wait for it.
//
// A thread would not do: only SIGKILL ends the wait for memory that does not come, and that ends
// all threads.  For FUSE even SIGKILL waits until the mount answers or ends.  So that we can end,
// the process has none of our files, and dies with us if it can.
//
// An answer takes 15 us (Linux 6.18, an idle CPU).

/// One thread at a time may use it.
class ReadingProcess {
 public:
  ReadingProcess() = default;
  ReadingProcess(const ReadingProcess&) = delete;
  ReadingProcess& operator=(const ReadingProcess&) = delete;
  ReadingProcess(ReadingProcess&&) = delete;
  ReadingProcess& operator=(ReadingProcess&&) = delete;
  ~ReadingProcess();

  static constexpr std::size_t kMostBytes = 32UL * 1024;
  /// How long the process may wait for memory.  A disk may take some 10 ms.  The time in which it
  /// has no CPU does not count.
  static constexpr std::uint64_t kPatienceNs = 100'000'000;

  /// Copies the memory at `avma` of a thread's process, up to kMostBytes.  Returns the number of
  /// bytes: fewer if a part is not mapped, or cannot be read.  Returns nullopt if they do not come
  /// in time.  The process is started when it is needed.
  std::optional<std::size_t> read(pid_t tid, std::uint64_t avma, std::span<std::byte> into);
  /// Returns the process; 0 before the first read.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  bool start();
  void stop(int patience_ms);
  void reap();
  [[nodiscard]] bool await_answer() const;

  Fd socket_;  ///< none: the process does not run
  pid_t pid_ = 0;
  Fd pidfd_;
  std::vector<Fd> stopped_;  ///< pidfds of processes that were killed and may still wait
};

/// One thread at a time may use it.
class MemoryReader {
 public:
  /// A process pays from `budget`, which must outlive this, for the time in which we wait for it.
  explicit MemoryReader(Budget& budget) : budget_(budget) {}
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;
  MemoryReader(MemoryReader&&) = delete;
  MemoryReader& operator=(MemoryReader&&) = delete;
  ~MemoryReader() = default;

  /// Copies the memory at `avma` of a process, given by any of its threads, until `into` is full.
  /// Returns the number of bytes: fewer if a part is not mapped or does not come in time, 0 if the
  /// process is gone or we may not read it.
  std::size_t read(pid_t tid, std::uint64_t avma, std::span<std::byte> into);

  /// The process has started another program.  Without this, reads may find the memory of a parent
  /// by vfork(2) for a second.
  void forget(pid_t tid);

 private:
  struct Files {
    pid_t tid = 0;
    std::uint64_t opened_ns = 0;
    Fd memory, pages, maps;
    /// A page that could not be read, such as that after a stack, of which each copy asks for more.
    std::uint64_t missing_page = UINT64_MAX;
  };

  std::size_t read_from(Files& files, std::uint64_t avma, std::span<std::byte> into);
  std::size_t ask(pid_t tid, std::uint64_t avma, std::span<std::byte> into);

  /// Returns where the files of a thread are.  Others with the same place replace them.
  Files& files_of(pid_t tid) noexcept {
    return files_[static_cast<std::size_t>(tid) % most_files_];
  }

  static constexpr std::size_t kFiles = 16;

  Budget& budget_;
  std::array<Files, kFiles> files_;
  /// There are three readers, so all of them have at most a fifth of the descriptors.
  std::size_t most_files_ = std::max<std::size_t>(share_of_descriptors(kFiles, 45), 1);
  ReadingProcess process_;
};

/// Whether we have no right to read the memory of a process; false if it is gone.
bool is_memory_forbidden(pid_t pid);

}  // namespace pe::languages
