// Keeps, in perf's build-id cache, the binaries of sampled processes that will not be found by
// their path later: deleted or replaced ones, those of containers, those run from memory.
//
// A process's binaries are looked at when it is first sampled, and again when it has mapped more.
// Copies are made by a thread of their own, so that the rings are emptied meanwhile.
// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "objects/build_id_cache.h"
#include "stream/history.h"

namespace pe::record {

class BinaryKeeper {
 public:
  explicit BinaryKeeper(objects::BuildIdCache cache);
  ~BinaryKeeper();
  BinaryKeeper(const BinaryKeeper&) = delete;
  BinaryKeeper& operator=(const BinaryKeeper&) = delete;
  BinaryKeeper(BinaryKeeper&&) = delete;
  BinaryKeeper& operator=(BinaryKeeper&&) = delete;

  /// Takes in a change to what a process has mapped.
  void follow(const stream::MappingChange& change);
  /// A sample of `pid`.
  void see(std::uint32_t pid, const stream::ProcessTable& processes);

  /// Looks for what has been deleted or replaced meanwhile, waits for the copies and tells of them:
  /// "2 binary files kept in ~/.debug"; empty if there was nothing to keep.
  std::string finish();

  /// How many files are held open, at most, and at most the part of all descriptors that is one of
  /// so many; others are not kept if they lose their path later.
  static constexpr std::size_t kMaxHeld = 2'048, kPartOfDescriptors = 4;
  /// What one recording keeps at most.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;

 private:
  struct Job {
    std::string path, build_id;
    objects::Image image;
  };
  struct Counts {
    std::uint64_t kept = 0;
    std::uint64_t too_large = 0;
    std::uint64_t failed = 0;
    std::uint64_t unopened = 0;  ///< for want of descriptors
    std::uint64_t short_of_memory = 0;
    bool is_refused = false;  ///< the cache's folder is not for us to write
  };

  void offer(std::uint32_t pid, const stream::Mapping& mapping);
  std::size_t held();
  void count_unopened();
  void keep(const stream::MappedFile& file, objects::Image image);
  void enqueue(Job job);
  void work();
  void count(objects::BuildIdCache::Kept kept);
  void stop();

  objects::BuildIdCache cache_;
  std::unordered_set<std::uint32_t> seen_;                 ///< processes without news since
  std::unordered_set<const stream::MappedFile*> offered_;  ///< and found or kept
  std::unordered_set<std::string> build_ids_;              ///< of all jobs
  struct Seen {
    stream::Mapping mapping;
    objects::Image image;
  };
  /// Found by their path when they were first seen, and held open: they may lose it, and their
  /// process be gone, before the recording ends.
  std::vector<Seen> here_;
  std::uint64_t bytes_ = 0;

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_finished_ = false;
  Counts counts_;
  std::thread worker_;  ///< started with the first job
};

}  // namespace pe::record
