// SPDX-License-Identifier: MIT
#include "recording/binary_keeper.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"
#include "recording/own_process.h"
#include "stream/proc/maps.h"

namespace pe::recording {

namespace {

/// Is the process in our mount and user namespaces, where only root and its owner write a file?
bool is_in_our_namespaces(std::uint32_t pid) {
  const pid_t live = stream::live_thread_of(static_cast<pid_t>(pid));
  const auto has_same = [live](std::string_view name) {
    const FileIdentity own = identity_at(fmt::format("/proc/self/ns/{}", name));
    const FileIdentity other = identity_at(fmt::format("/proc/{}/ns/{}", live, name));
    return own.is_known() && own.device == other.device && own.inode == other.inode;
  };
  return has_same("mnt") && has_same("user");
}

bool is_trusted_file(const objects::Image& image) {
  struct stat status = {};
  return ::fstat(image.fd(), &status) == 0 && objects::is_trusted(status);
}

}  // namespace

BinaryKeeper::BinaryKeeper(objects::BuildIdCache cache, bool trusts_all)
    : cache_(std::move(cache)), trusts_all_(trusts_all) {}

BinaryKeeper::~BinaryKeeper() { stop(); }

void BinaryKeeper::follow(const stream::MappingChange& change) {
  // Code that a JIT maps is not a binary to keep, and may be mapped a thousand times a second.
  if (change.mapped == nullptr || !change.mapped->build_id.empty())
    seen_.erase(change.pid);
}

void BinaryKeeper::see(std::uint32_t pid, const stream::ProcessTable& processes) {
  if (!seen_.insert(pid).second)
    return;
  if (const auto* space = processes.space(pid))
    for (const auto& [start, mapping] : space->all())
      if (!mapping.file->build_id.empty() && !offered_.contains(mapping.file))
        offer(pid, mapping);
}

void BinaryKeeper::offer(std::uint32_t pid, const stream::Mapping& mapping) {
  if (has_job(*mapping.file)) {
    offered_.insert(mapping.file);
    return;
  }
  const bool may_hold = held() < share_of_descriptors(kMaxHeld, kPartOfDescriptors) &&
                        has_free_descriptors(spare_descriptors());
  if (auto image = objects::open_here(mapping)) {
    offered_.insert(mapping.file);
    if (may_hold)
      here_.push_back({mapping, std::move(*image)});
    return;
  }
  if (!may_hold) {
    offered_.insert(mapping.file);
    return count_unopened();
  }
  // If this process no longer has the file, the keeper tries again with the next process that has
  // mapped it.
  auto opened = objects::open_from_process(static_cast<pid_t>(pid), mapping);
  if (auto* image = std::get_if<objects::Image>(&opened)) {
    offered_.insert(mapping.file);
    keep(*mapping.file, std::move(*image), is_in_our_namespaces(pid));
  }
}

bool BinaryKeeper::has_job(const stream::MappedFile& file) const {
  return kept_.contains({file.build_id, file.identity});
}

/// Returns how many files we hold open, including those that wait for the worker.
std::size_t BinaryKeeper::held() {
  const std::lock_guard lock(mutex_);
  return here_.size() + jobs_.size();
}

void BinaryKeeper::count_unopened() {
  const std::lock_guard lock(mutex_);
  ++counts_.unopened;
}

void BinaryKeeper::keep(const stream::MappedFile& file, objects::Image image,
                        bool is_of_our_system) {
  using Cache = objects::BuildIdCache;
  const bool is_trusted = trusts_all_ || (is_of_our_system && is_trusted_file(image));
  kept_.insert({file.build_id, file.identity});
  if (is_trusted && !kept_.insert({file.build_id, {}}).second && file.identity.is_known())
    return;  // another file with this build id is kept for all
  const std::uint64_t bytes = image.size_bytes();
  if (bytes > cache_.max_bytes() - std::min(cache_.max_bytes(), bytes_))
    return count(Cache::Kept::kTooLarge);
  bytes_ += bytes;
  enqueue({file, std::move(image), is_trusted ? Cache::Names::kBuildId : Cache::Names::kThisFile});
}

void BinaryKeeper::enqueue(Job job) {
  const std::lock_guard lock(mutex_);
  if (!worker_.joinable())
    try {
      worker_ = start_thread([this] { work(); });
    } catch (const Error&) {  // the recording continues without copies
      ++counts_.short_of_memory;
      return;
    }
  jobs_.push_back(std::move(job));
  changed_.notify_one();
}

void BinaryKeeper::work() {
  run_among_others();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_finished_ || !jobs_.empty(); });
    if (jobs_.empty())
      return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      count(cache_.keep(job.file, job.image.fd(), job.names));
      lock.lock();
    } catch (const std::bad_alloc&) {
      lock.lock();
      ++counts_.short_of_memory;
    }
  }
}

void BinaryKeeper::count(objects::BuildIdCache::Kept kept) {
  using Kept = objects::BuildIdCache::Kept;
  const std::lock_guard lock(mutex_);
  counts_.kept += kept == Kept::kYes ? 1 : 0;
  counts_.too_large += kept == Kept::kTooLarge ? 1 : 0;
  counts_.failed += kept == Kept::kChanged || kept == Kept::kNotWritten ? 1 : 0;
  counts_.failed += kept == Kept::kNotOurs ? 1 : 0;
  counts_.is_refused = counts_.is_refused || kept == Kept::kNotOurs;
}

void BinaryKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
  }
  changed_.notify_one();
  if (worker_.joinable())
    worker_.join();
}

void BinaryKeeper::finish(Closing& closing) {
  for (Seen& seen : here_)
    if (!has_job(*seen.mapping.file) && !objects::open_here(seen.mapping))
      keep(*seen.mapping.file, std::move(seen.image), true);  // its path was in our namespaces
  stop();
  if (counts_.kept > 0)
    closing.detail(plural(counts_.kept, "binary file") + " kept in ~/.debug");
  const auto add = [&closing](std::uint64_t count, std::string_view what, std::string_view fix) {
    if (count > 0)
      closing.doubt(plural(count, "binary file") + std::string(what), fix);
  };
  constexpr std::string_view kKeepThem = "run pe-symbolize before the files are gone";
  add(counts_.too_large, " too large to keep", kKeepThem);
  add(counts_.unopened, " not kept: too many open files", "raise ulimit -n");
  add(counts_.short_of_memory, " not kept: out of memory", kKeepThem);
  add(counts_.failed,
      counts_.is_refused ? " not kept: ~/.debug is a link, or others may write there"
                         : " not kept: ~/.debug cannot be written",
      "make it a folder that only you may write");
}

}  // namespace pe::recording
