// SPDX-License-Identifier: MIT
#include "base/budget.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/clock.h"

namespace pe {
namespace {

constexpr std::size_t index_of(Resource resource) { return static_cast<std::size_t>(resource); }

constexpr std::array<Resource, kResources> kAll = {Resource::kCpuNs, Resource::kReadBytes,
                                                   Resource::kKeptBytes, Resource::kWrittenBytes,
                                                   Resource::kStackBytes};

}  // namespace

void Budget::look(std::uint64_t now_ns) {
  constexpr std::uint64_t kEveryNs = 20'000'000;
  if (looker_ != std::this_thread::get_id() || !look_ || now_ns - looked_ns_ < kEveryNs)
    return;
  looked_ns_ = now_ns;
  look_();
}

void Budget::clear(Resource resource) {
  const std::size_t i = index_of(resource);
  all_[i] = {};
  for (auto& [owner, sums] : owners_)
    sums[i] = {};
  for (auto& [target, known] : targets_)
    known.sums[i] = {};
}

void Budget::end(std::uint64_t cpu_ns) {
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
  clear(Resource::kCpuNs);
  limits_[index_of(Resource::kCpuNs)] = {static_cast<double>(cpu_ns), 0};
}

bool Budget::has_ended() const {
  const std::scoped_lock lock(mutex_);
  return has_ended_;
}

double Budget::now(const Sum& sum, Resource resource, std::uint64_t now_ns) const {
  const double seconds = limits_[index_of(resource)].seconds;
  if (seconds == 0 || now_ns <= sum.at_ns)
    return sum.value;
  return sum.value * std::exp(-static_cast<double>(now_ns - sum.at_ns) / kNsPerSecond / seconds);
}

void Budget::add(Sum& sum, Resource resource, double amount, std::uint64_t now_ns) const {
  sum.value = std::max(0.0, now(sum, resource, now_ns) + amount);
  sum.at_ns = std::max(sum.at_ns, now_ns);
}

Budget::Target& Budget::target_of(std::uint32_t target, std::uint64_t now_ns) {
  if (targets_.size() >= forget_at_)
    forget_small(now_ns);
  const auto [found, is_new] = targets_.try_emplace(target);
  if (is_new && owner_of_)
    found->second.owner = owner_of_(target);
  return found->second;
}

/// Forgets targets that have spent next to nothing: a system may start processes all the time.
void Budget::forget_small(std::uint64_t now_ns) {
  constexpr double kNothing = 1e-6;
  std::erase_if(targets_, [&](const auto& item) {
    return std::ranges::all_of(kAll, [&](Resource resource) {
      return now(item.second.sums[index_of(resource)], resource, now_ns) <=
             kNothing * limits_[index_of(resource)].most;
    });
  });
  forget_at_ = std::max(forget_at_, 2 * targets_.size());
}

bool Budget::is_within(const Target& target, Resource resource, double amount,
                       std::uint64_t now_ns) {
  const std::size_t i = index_of(resource);
  const double of_whole = limits_[i].most - now(all_[i], resource, now_ns) - amount;
  const double of_owner =
      kShare * of_whole - now(owners_[target.owner][i], resource, now_ns) - amount;
  const double of_target = kShare * of_owner - now(target.sums[i], resource, now_ns) - amount;
  return of_whole >= 0 && of_owner >= 0 && of_target >= 0;
}

bool Budget::may_spend(std::uint32_t target, Resource resource, double amount,
                       std::uint64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  return is_within(target_of(target, now_ns), resource, amount, now_ns);
}

std::optional<Resource> Budget::lacking(std::uint32_t target, std::uint64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  const Target& known = target_of(target, now_ns);
  for (const Resource resource : kAll)
    if (resource != Resource::kStackBytes && !is_within(known, resource, least(resource), now_ns))
      return resource;
  return std::nullopt;
}

double Budget::least(Resource resource) const {
  constexpr double kPart = 1e-4;
  return kPart * limits_[index_of(resource)].most;
}

void Budget::spend(std::uint32_t target, Resource resource, double amount, std::uint64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  const std::size_t i = index_of(resource);
  add(all_[i], resource, amount, now_ns);
  // Destructors call this, so it must not throw.  The sum of all needs no memory.
  try {
    Target& known = target_of(target, now_ns);
    add(known.sums[i], resource, amount, now_ns);
    add(owners_[known.owner][i], resource, amount, now_ns);
  } catch (const std::bad_alloc&) {
  }
}

void Budget::count_loss(std::uint32_t target, Resource why, std::uint64_t now_ns) {
  constexpr std::size_t kMostLosses = 65'536;
  const std::scoped_lock lock(mutex_);
  if (losses_.size() >= kMostLosses && !losses_.contains(target))
    return;
  const auto [loss, is_new] =
      losses_.try_emplace(target, Loss{.target = target, .why = why, .first_ns = now_ns});
  ++loss->second.count;
}

std::vector<Budget::Loss> Budget::losses() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Loss> all;
  for (const auto& [target, loss] : losses_)
    all.push_back(loss);
  std::ranges::sort(all, [](const Loss& a, const Loss& b) {
    return a.count != b.count ? a.count > b.count : a.target < b.target;
  });
  return all;
}

void Spender::enter() {
  if (budget_ != nullptr && depth_++ == 0)
    measured_ns_ = own_cpu_ns();
}

void Spender::leave() {
  if (budget_ == nullptr)
    return;
  if (depth_ == 1)
    settle(monotonic_ns());
  --depth_;
}

void Spender::charge_nothing() {
  if (budget_ != nullptr)
    settle(monotonic_ns());
  is_free_ = true;
}

/// Spends what was measured and counted since the last time.
void Spender::settle(std::uint64_t now_ns) {
  if (is_free_) {
    estimated_ns_ = unspent_bytes_ = 0;
    return;
  }
  std::uint64_t ns = std::exchange(estimated_ns_, 0);
  if (depth_ > 0) {
    const std::uint64_t measured_ns = own_cpu_ns();
    ns += measured_ns - std::exchange(measured_ns_, measured_ns);
  }
  if (ns > 0)
    budget_->spend(target_, Resource::kCpuNs, static_cast<double>(ns), now_ns);
  if (const std::size_t bytes = std::exchange(unspent_bytes_, 0); bytes > 0)
    budget_->spend(target_, Resource::kReadBytes, static_cast<double>(bytes), now_ns);
}

void Spender::check() {
  unchecked_ = 0;
  if (budget_ == nullptr)
    return;
  const std::uint64_t now_ns = monotonic_ns();
  settle(now_ns);
  const auto lacking = is_free_ ? std::optional<Resource>() : budget_->lacking(target_, now_ns);
  is_over_ = lacking.has_value();
  if (lacking)
    count_loss(*lacking, now_ns);
  budget_->look(now_ns);
  if (depth_ > 0)  // what the look has cost is not the target's
    measured_ns_ = own_cpu_ns();
}

/// Counts once in a scope.
void Spender::count_loss(Resource why, std::uint64_t now_ns) {
  if (depth_ == 0 || !std::exchange(has_lost_, true))
    budget_->count_loss(target_, why, now_ns);
}

bool Spender::may_start() {
  check();
  return !is_over_;
}

bool Spender::may_spend(Resource resource, std::size_t amount, std::uint64_t now_ns) {
  if (budget_->may_spend(target_, resource, static_cast<double>(amount), now_ns))
    return true;
  count_loss(resource, now_ns);
  return false;
}

bool Spender::spend(Resource resource, std::size_t amount) {
  if (budget_ == nullptr)
    return true;
  const std::uint64_t now_ns = monotonic_ns();
  if (!may_spend(resource, amount, now_ns))
    return false;
  budget_->spend(target_, resource, static_cast<double>(amount), now_ns);
  return true;
}

bool Spender::may_hold(std::size_t bytes) {
  return budget_ == nullptr || is_free_ || may_spend(Resource::kKeptBytes, bytes, monotonic_ns());
}

bool Spender::may_keep(std::size_t bytes) { return spend(Resource::kKeptBytes, bytes); }

bool Spender::may_write(std::size_t bytes) { return spend(Resource::kWrittenBytes, bytes); }

void Spender::release(std::size_t bytes) {
  if (budget_ != nullptr && bytes > 0)
    budget_->spend(target_, Resource::kKeptBytes, -static_cast<double>(bytes), monotonic_ns());
}

}  // namespace pe
