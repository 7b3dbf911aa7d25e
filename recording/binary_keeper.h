// Keeps binaries of sampled processes in perf's build-id cache, if their path will not lead to them
// later.  These are deleted or replaced binaries, those of containers, and those run from memory.
// A file from another mount or user namespace, or of another user, is kept for this recording only.
//
// The keeper checks a process's binaries at its first sample, and again after it has mapped more.
// A separate thread makes the copies, so the rings are emptied meanwhile.
// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/cli/closing.h"
#include "objects/build_id_cache.h"
#include "stream/history.h"

namespace pe::recording {

class BinaryKeeper {
 public:
  /// With `trusts_all` the files of containers, and of other users, also name other recordings.
  BinaryKeeper(objects::BuildIdCache cache, bool trusts_all);
  ~BinaryKeeper();
  BinaryKeeper(const BinaryKeeper&) = delete;
  BinaryKeeper& operator=(const BinaryKeeper&) = delete;
  BinaryKeeper(BinaryKeeper&&) = delete;
  BinaryKeeper& operator=(BinaryKeeper&&) = delete;

  /// Accepts a change of a process's mappings.
  void follow(const stream::MappingChange& change);
  /// Checks the binaries of sampled process `pid`, unless nothing has changed since the last check.
  void see(std::uint32_t pid, const stream::ProcessTable& processes);

  /// Finds files that were deleted or replaced meanwhile, and waits for the copies.  Adds "2 binary
  /// files kept in ~/.debug" to the details, and files that could not be kept to the doubts.
  void finish(Closing& closing);

  /// At most kMaxHeld files are held open, and at most one in kPartOfDescriptors of all
  /// descriptors.  Other files are not kept if they lose their path later.
  static constexpr std::size_t kMaxHeld = 2'048, kPartOfDescriptors = 4;

 private:
  struct Job {
    stream::MappedFile file;
    objects::Image image;
    objects::BuildIdCache::Names names;
  };
  struct Counts {
    std::uint64_t kept = 0;
    std::uint64_t too_large = 0;
    std::uint64_t failed = 0;
    std::uint64_t unopened = 0;  ///< for lack of descriptors
    std::uint64_t short_of_memory = 0;
    bool is_refused = false;  ///< a folder of the cache is a link, or another user's
  };

  void offer(std::uint32_t pid, const stream::Mapping& mapping);
  std::size_t held();
  void count_unopened();
  void keep(const stream::MappedFile& file, objects::Image image, bool is_of_our_system);
  [[nodiscard]] bool has_job(const stream::MappedFile& file) const;
  void enqueue(Job job);
  void work();
  void count(objects::BuildIdCache::Kept kept);
  void stop();

  objects::BuildIdCache cache_;
  std::unordered_set<std::uint32_t> seen_;                 ///< checked processes, unchanged since
  std::unordered_set<const stream::MappedFile*> offered_;  ///< files that were found or kept
  /// Of all jobs; also without an identity if the file is kept for its build id.
  std::set<std::pair<std::string, FileIdentity>> kept_;
  bool trusts_all_;
  struct Seen {
    stream::Mapping mapping;
    objects::Image image;
  };
  /// Files that were found by their path when first seen.  They are held open, because they may
  /// lose their path, and their process may end, before the recording ends.
  std::vector<Seen> here_;
  std::uint64_t bytes_ = 0;

  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_finished_ = false;
  Counts counts_;
  std::thread worker_;  ///< started with the first job
};

}  // namespace pe::recording
