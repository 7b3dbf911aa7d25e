// The folder in which profiles wait to be sent: bounded, and whole whenever a process is killed.
//
//   FROM-UNTIL-N.pprof.gz   profiles, spool_file.h
//   sending/                the one that is being sent, if there is one
//   counts                  counts.h
//
// Whoever changes something holds a lock (flock(2)) on the folder for that moment, so what is
// unfinished under the lock was left by a killed process.  Whoever sends holds one on sending/ as
// long as it runs.  A profile moves by rename(2) alone; if it is lost, it is counted before it
// goes. SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "profile-push/counts.h"
#include "profile-push/spool_file.h"

namespace pe::push {

class Spool {
 public:
  /// Makes the folder if there is none, for its owner alone.  What was left half-written is removed
  /// and counted.  Throws Error.
  Spool(std::string folder, std::uint64_t limit_bytes);

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

  /// Adds a profile, and drops the oldest ones until all fit into the limit; returns how many
  /// were dropped.  Throws Error, also if the profile alone is larger; then it counts as dropped.
  std::uint64_t put(const TimeRange& times, std::string_view content);

  [[nodiscard]] Counts counts() const;
  /// How many profiles there are, the one that is being sent among them.
  [[nodiscard]] std::size_t waiting() const;

 private:
  friend class Outbox;

  [[nodiscard]] std::string path(std::string_view name) const {
    return folder_ + "/" + std::string(name);
  }
  void remove_unfinished();
  [[nodiscard]] std::string free_name(const TimeRange& times) const;
  std::uint64_t make_room(std::uint64_t bytes);
  /// Under the lock.
  void count(Counts::Field which, std::uint64_t more = 1);

  std::string folder_;
  std::uint64_t limit_bytes_;
  Counts unwritten_;  ///< what the disk had no room for
};

/// A profile that nobody drops until it has been dealt with.
struct Outgoing {
  SpoolName name;
  std::string content;
};

/// The side of a spool from which profiles are sent: one process at a time.
class Outbox {
 public:
  /// nullopt if another process has it.  What that left in sending/ when it was killed waits again.
  /// `spool` must outlive the outbox.  Throws Error.
  static std::optional<Outbox> open(Spool& spool);

  /// The oldest profile; nullopt if there is none.  One of which nothing can be made is removed and
  /// counted, one that cannot be read is left where it is.
  std::optional<Outgoing> take();
  /// Those that could not be read.
  [[nodiscard]] const std::set<std::string>& unreadable() const noexcept { return unreadable_; }
  /// It has arrived.
  void sent(const Outgoing& outgoing);
  /// The server does not want it.
  void refused(const Outgoing& outgoing);
  /// It waits on, in its place.
  void give_back(const Outgoing& outgoing);

 private:
  Outbox(Spool& spool, Fd lock) : spool_(&spool), lock_(std::move(lock)) {}

  void recover();
  std::optional<SpoolName> claim_oldest();
  [[nodiscard]] std::string sending_path(const SpoolName& name) const;

  Spool* spool_;
  Fd lock_;
  std::deque<SpoolName> known_;  ///< sorted; may have been dropped since
  std::set<std::string> unreadable_;
};

}  // namespace pe::push
