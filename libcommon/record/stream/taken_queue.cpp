// SPDX-License-Identifier: MIT
#include "record/stream/taken_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace pe::record {
namespace {

std::size_t bytes_of_sample(const TakenSample& sample) {
  return sizeof(TakenEvent) + sample.stack.size();
}

}  // namespace

TakenQueue::TakenQueue(std::size_t most_bytes)
    : most_bytes_(most_bytes), wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakes_)
    throw_errno("eventfd", errno);
}

void TakenQueue::add(TakenEvent event) {
  events_.push_back(std::move(event));
  if (events_.size() == 1)
    wake();
}

void TakenQueue::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wakes_.get(), &one, sizeof one);  // cannot fail: the count is 0, or 1
}

void TakenQueue::fail(std::exception_ptr why) noexcept {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(why);
  wake();
}

void TakenQueue::push(TakenSample sample) {
  const std::lock_guard lock(mutex_);
  const std::size_t bytes = bytes_of_sample(sample);
  if (bytes_ + bytes > most_bytes_) {
    ++lost_;
    return;
  }
  bytes_ += bytes;
  add(std::move(sample));
}

void TakenQueue::push(TaskChange change) {
  const std::lock_guard lock(mutex_);
  if (bytes_ + change.maps.size() > most_bytes_)
    change.maps.clear();
  bytes_ += change.maps.size();
  add(std::move(change));
}

std::vector<TakenEvent> TakenQueue::take() {
  const std::lock_guard lock(mutex_);
  if (failure_)
    std::rethrow_exception(failure_);
  std::uint64_t count = 0;
  (void)!::read(wakes_.get(), &count, sizeof count);
  bytes_ = 0;
  return std::exchange(events_, {});
}

bool TakenQueue::holds_exec_of(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(events_.begin(), events_.end(), [&](const TakenEvent& event) {
    const auto* change = std::get_if<TaskChange>(&event);
    return change != nullptr && change->kind == TaskChange::Kind::kExec && change->pid == pid;
  });
}

std::uint64_t TakenQueue::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace pe::record
