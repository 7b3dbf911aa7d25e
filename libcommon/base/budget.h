// Limits what reading of untrusted sources costs: CPU time, bytes read, bytes kept, bytes written.
//
// A recorder reads the memory and the files of processes that it does not control.  Any of them can
// make that expensive.  So all readers share one budget, and each draws on it for its target, a
// process.  A target belongs to an owner, the process's user.
//
// An owner may spend until its sum is kShare times as large as what is left of the whole, and a
// target of it until its sum is kShare times as large as what is left of its owner's part.  So one
// alone can use most of the whole, many together can never use all of it, and there is always
// something left for another owner.  Within an owner the largest spender is refused first.
//
// Sums of CPU time and of bytes read fade: after Limit::seconds a third is left of them.  So the
// limit may be spent at once, and then as much in each such time.
//
// All functions except check_by() may be called from any thread.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace pe {

/// kStackBytes is the memory of stacks after their copies.  Whoever has spent that can still spend
/// the others: tables of code are worth more than the rest of one deep stack.
enum class Resource : std::uint8_t { kCpuNs, kReadBytes, kKeptBytes, kWrittenBytes, kStackBytes };
inline constexpr std::size_t kResources = 5;

class Budget {
 public:
  struct Limit {
    double most;
    double seconds;  ///< 0: what is spent stays, until it is given back
  };
  /// By Resource.  Honest programs are far below: clang with libLLVM takes 0.4 s of CPU time once,
  /// and a large program in Python 0.1 s and 20 MB.
  using Limits = std::array<Limit, kResources>;
  static constexpr Limits kUsual = {{
      {1.5e9, 30},  // 1.5 s at once, and then 5 % of a CPU
      {768.0 * (1U << 20), 1},
      {256.0 * (1U << 20), 0},
      {64.0 * (1U << 20), 60},
      // A half of that costs half of a CPU, in stacks of 5 MiB (Linux 6.18).
      {768.0 * (1U << 20), 1},
  }};
  static constexpr double kShare = 3;

  using OwnerOf = std::function<std::uint32_t(std::uint32_t target)>;
  /// Without `owner_of` all targets have one owner.  look() works in the calling thread.
  explicit Budget(const Limits& limits = kUsual, OwnerOf owner_of = nullptr)
      : owner_of_(std::move(owner_of)), given_(limits), limits_(limits) {}

  /// Returns the limit that it was given; end() does not change that.
  [[nodiscard]] const Limit& given(Resource resource) const noexcept {
    return given_[static_cast<std::size_t>(resource)];
  }

  /// From now on, long work of the thread that constructed this calls `look` about every 20 ms.
  /// Only that thread may call this.
  void check_by(std::function<void()> look) { look_ = std::move(look); }
  /// Calls it, in that thread only, unless it was called within the last 20 ms.
  void look(std::uint64_t now_ns);

  /// The recording has ended: the rest of its work gets `cpu_ns` of CPU time in all.
  void end(std::uint64_t cpu_ns);
  [[nodiscard]] bool has_ended() const;

  /// Returns whether a target may spend `amount` more now.
  bool may_spend(std::uint32_t target, Resource resource, double amount, std::uint64_t now_ns);
  /// Returns the resource, other than kStackBytes, of which it may not even spend a little; nullopt
  /// if there is none.
  std::optional<Resource> lacking(std::uint32_t target, std::uint64_t now_ns);
  /// Adds to the target's sum.  Kept bytes are given back by a negative amount.
  void spend(std::uint32_t target, Resource resource, double amount, std::uint64_t now_ns);

  /// Counts that a target has lost something, because it may not spend more of that.
  void count_loss(std::uint32_t target, Resource why, std::uint64_t now_ns);
  struct Loss {
    std::uint32_t target = 0;
    Resource why = Resource::kCpuNs;  ///< of the first loss
    std::uint64_t first_ns = 0;
    std::uint64_t count = 0;
  };
  /// Returns the targets with losses, those with the most first.
  [[nodiscard]] std::vector<Loss> losses() const;

 private:
  struct Sum {
    double value = 0;
    std::uint64_t at_ns = 0;
  };
  using Sums = std::array<Sum, kResources>;
  struct Target {
    std::uint32_t owner = 0;
    Sums sums = {};
  };

  Target& target_of(std::uint32_t target, std::uint64_t now_ns);
  bool is_within(const Target& target, Resource resource, double amount, std::uint64_t now_ns);
  [[nodiscard]] double least(Resource resource) const;
  [[nodiscard]] double now(const Sum& sum, Resource resource, std::uint64_t now_ns) const;
  void add(Sum& sum, Resource resource, double amount, std::uint64_t now_ns) const;
  void forget_small(std::uint64_t now_ns);
  void clear(Resource resource);

  OwnerOf owner_of_;
  Limits given_;
  std::thread::id looker_ = std::this_thread::get_id();
  std::function<void()> look_;  ///< only looker_ accesses this and the next
  std::uint64_t looked_ns_ = 0;

  mutable std::mutex mutex_;  ///< guards the members below
  Limits limits_;
  bool has_ended_ = false;
  Sums all_ = {};
  std::unordered_map<std::uint32_t, Sums> owners_;
  std::unordered_map<std::uint32_t, Target> targets_;
  std::size_t forget_at_ = 4096;  ///< targets
  std::unordered_map<std::uint32_t, Loss> losses_;
};

/// Draws on a budget for one target.  One thread at a time may use it.  A copy draws on the same
/// budget for the same target, and is in no scope.
class Spender {  // NOLINT(cppcoreguidelines-special-member-functions)
 public:
  Spender() = default;  ///< without limits
  Spender(Budget& budget, std::uint32_t target) : budget_(&budget), target_(target) {}
  Spender(const Spender& other) : budget_(other.budget_), target_(other.target_) {}
  /// Neither may be in a scope.
  Spender& operator=(const Spender& other) = default;
  ~Spender() = default;

  /// Measures the thread's CPU time while it lives.  Nested scopes count once.
  class Scope {
   public:
    explicit Scope(Spender& spender) : spender_(spender) {
      if (spender_.depth_ == 0)
        spender_.has_lost_ = spender_.is_free_ = false;
      spender_.enter();
    }
    ~Scope() { spender_.leave(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Scope(Scope&&) = delete;
    Scope& operator=(Scope&&) = delete;

   private:
    Spender& spender_;
  };
  /// A scope calls these.  It may leave() and enter() again around work that is not the target's.
  void enter();
  void leave();
  /// The rest of the scope costs the target nothing.
  void charge_nothing();

  /// Returns whether the target may spend now.  Counts a loss if not.
  bool may_start();
  /// The same for a loop, each of whose turns takes up to 10 us: checks once in 64 turns.
  bool may_go_on(std::size_t turns = 1) {
    unchecked_ += turns;
    if (unchecked_ >= kTurns)
      check();
    return !is_over_;
  }
  /// Returns whether the last check found that the target may not spend.
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }
  /// Returns whether something has been refused in this scope.
  [[nodiscard]] bool has_lost() const noexcept { return has_lost_; }
  /// Returns whether the scope costs the target nothing.
  [[nodiscard]] bool is_free() const noexcept { return is_free_; }
  /// Returns whether that many bytes may be read now, and spends them.  Outside of a scope the CPU
  /// time for that is estimated.
  bool may_read(std::size_t bytes) {
    unspent_bytes_ += bytes;
    estimated_ns_ += depth_ == 0 ? kNsOfRead + bytes / kBytesOfNs : 0;
    return may_go_on(1 + bytes / kBytesOfTurn);
  }
  /// Returns whether there is room to hold that many bytes for a while.
  bool may_hold(std::size_t bytes);
  /// Spends bytes that are kept.  Returns false, and spends nothing, if there is no room.
  bool may_keep(std::size_t bytes);
  /// Gives back bytes that are kept no longer.
  void release(std::size_t bytes);
  /// Spends bytes that are written to the stream.  Returns false, and spends nothing, if there is
  /// no room.
  bool may_write(std::size_t bytes);

 private:
  static constexpr std::size_t kTurns = 64, kBytesOfTurn = 16'384;
  /// process_vm_readv(2) of a page takes 0.7 us (Linux 6.18).
  static constexpr std::uint64_t kNsOfRead = 500, kBytesOfNs = 16;

  void check();
  void settle(std::uint64_t now_ns);
  void count_loss(Resource why, std::uint64_t now_ns);
  bool may_spend(Resource resource, std::size_t amount, std::uint64_t now_ns);
  bool spend(Resource resource, std::size_t amount);

  Budget* budget_ = nullptr;  ///< null: no limits
  std::uint32_t target_ = 0;
  unsigned depth_ = 0;             ///< of scopes
  std::uint64_t measured_ns_ = 0;  ///< CPU time of the thread that was spent, if depth_ > 0
  std::uint64_t estimated_ns_ = 0;
  std::size_t unspent_bytes_ = 0, unchecked_ = 0;
  bool is_over_ = false, has_lost_ = false, is_free_ = false;
};

/// Bytes that are kept for a target.  They are given back when it dies.
class KeptBytes {
 public:
  KeptBytes() = default;
  explicit KeptBytes(const Spender& spender) : spender_(spender) {}
  KeptBytes(KeptBytes&& other) noexcept
      : spender_(other.spender_), bytes_(std::exchange(other.bytes_, 0)) {}
  KeptBytes& operator=(KeptBytes&& other) noexcept {
    std::swap(spender_, other.spender_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;
  ~KeptBytes() { release(); }

  /// Returns whether there is room for so many more.
  bool may_add(std::size_t bytes) {
    const bool has_room = spender_.may_keep(bytes);
    bytes_ += has_room ? bytes : 0;
    return has_room;
  }
  void release() { spender_.release(std::exchange(bytes_, 0)); }
  /// Gives back a part.
  void release(std::size_t bytes) {
    bytes_ -= bytes;
    spender_.release(bytes);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  Spender spender_;
  std::size_t bytes_ = 0;
};

// Work for targets that the budget did not allow, until it allows it.

/// One item for each target.
template <typename Item>
class Postponed {
 public:
  void add(std::uint32_t target, Item item) { items_.insert_or_assign(target, std::move(item)); }
  void forget(std::uint32_t target) { items_.erase(target); }
  [[nodiscard]] bool contains(std::uint32_t target) const { return items_.contains(target); }

  /// Removes the items whose target may spend by now, and calls `again(target, item)` for each,
  /// which may add it again.  Does nothing if it did so within the last 100 ms.
  template <typename Again>
  void retry(Budget& budget, const Again& again) {
    constexpr std::uint64_t kRestNs = 100'000'000;
    if (items_.empty())
      return;
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns - retried_ns_ < kRestNs)
      return;
    retried_ns_ = now_ns;
    for (auto& [target, item] : std::exchange(items_, {}))
      if (budget.lacking(target, now_ns))
        add(target, std::move(item));
      else
        again(target, item);
  }

 private:
  std::unordered_map<std::uint32_t, Item> items_;
  std::uint64_t retried_ns_ = 0;
};

}  // namespace pe
