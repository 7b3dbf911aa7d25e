// SPDX-License-Identifier: MIT
#include "recording/stream/engine_ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace pe::recording {
namespace {

std::vector<stream::Ring> one_ring(std::size_t bytes) {
  std::vector<stream::Ring> rings;
  rings.push_back(stream::Ring::allocate(bytes));
  return rings;
}

}  // namespace

EngineRing::EngineRing(std::size_t bytes)
    : rings_(one_ring(bytes)),
      writer_(rings_.front()),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakes_)
    throw_errno("eventfd", errno);
}

bool EngineRing::write(Bytes records, bool is_sample) {
  constexpr std::size_t kShare = 16;
  const std::size_t kept = is_sample ? writer_.ring_bytes() / kShare : 0;
  if (records.size() + kept > writer_.room())
    return false;
  writer_.add(records);
  writer_.publish();
  wake();
  return true;
}

void EngineRing::wake() noexcept {
  if (has_woken_.exchange(true))
    return;
  const std::uint64_t one = 1;
  (void)!::write(wakes_.get(), &one, sizeof one);  // cannot fail: the count is 0, or 1
}

void EngineRing::fail(std::exception_ptr why) noexcept {
  failure_ = std::move(why);
  has_failed_ = true;
  has_woken_ = false;
  wake();
}

void EngineRing::check() {
  if (has_failed_)
    std::rethrow_exception(failure_);
  std::uint64_t count = 0;
  (void)!::read(wakes_.get(), &count, sizeof count);
  has_woken_.exchange(false);  // later records wake us again; earlier ones are visible now
}

}  // namespace pe::recording
