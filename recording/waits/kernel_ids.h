// The threads' numbers in the data of tracepoints, which are those of the first pid namespace.  The
// ids of samples are those of ours.  A switch of a thread has both.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace pe::waits {

class KernelIds {
 public:
  /// `are_ours`: this is the first pid namespace, so the numbers are the same.
  explicit KernelIds(bool are_ours) : are_ours_(are_ours) {}

  /// The thread has this number in the kernel.
  void learn(std::uint32_t number, std::uint32_t tid) {
    if (are_ours_)
      return;
    if (const auto found = numbers_.find(tid); found != numbers_.end() && found->second == number)
      return;
    forget(tid);
    // A thread that executes a program changes its number, so targets could make this grow.  The
    // numbers that are lost are learnt again at the threads' next switches.
    if (numbers_.size() >= kMost)
      *this = KernelIds(false);
    numbers_[tid] = number;
    tids_[number] = tid;
  }
  /// The thread has ended.
  void forget(std::uint32_t tid) {
    const auto found = numbers_.find(tid);
    if (found == numbers_.end())
      return;
    if (const auto known = tids_.find(found->second); known != tids_.end() && known->second == tid)
      tids_.erase(known);
    numbers_.erase(found);
  }
  /// Returns the thread's id here; nullopt if it is not known.
  [[nodiscard]] std::optional<std::uint32_t> tid_of(std::uint32_t number) const {
    if (are_ours_)
      return number;
    const auto found = tids_.find(number);
    return found == tids_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  bool are_ours_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  ///< by tid
  std::unordered_map<std::uint32_t, std::uint32_t> tids_;     ///< by number
};

}  // namespace pe::waits
