// SPDX-License-Identifier: MIT
#include "record/stream/held_taken.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "base/clock.h"

namespace pe::record {
namespace {

std::uint64_t time_of_taken(const TakenEvent& event) {
  return std::visit([](const auto& any) { return any.time_ns; }, event);
}

}  // namespace

void HeldTaken::hold(TakenSample sample) {
  bytes_ += sample.stack.size();
  sample.time_ns = std::clamp(sample.time_ns, released_ns_, std::max(released_ns_, monotonic_ns()));
  add(std::move(sample));
}

void HeldTaken::hold(TaskChange change) {
  bytes_ += change.maps.size();
  change.time_ns = std::clamp(change.time_ns, released_ns_, std::max(released_ns_, monotonic_ns()));
  add(std::move(change));
}

void HeldTaken::add(TakenEvent event) {
  events_.push_back(std::move(event));
  bytes_ += sizeof(TakenEvent);
  if (bytes_ > most_bytes_)
    release_all();
}

void HeldTaken::end_look(std::uint64_t began_ns) {
  release_until(std::exchange(last_look_ns_, began_ns));
}

void HeldTaken::release_all() { release_until(std::numeric_limits<std::uint64_t>::max()); }

void HeldTaken::release_until(std::uint64_t time_ns) {
  std::stable_sort(events_.begin(), events_.end(), [](const TakenEvent& a, const TakenEvent& b) {
    return time_of_taken(a) < time_of_taken(b);
  });
  const auto first_held =
      std::find_if(events_.begin(), events_.end(),
                   [&](const TakenEvent& event) { return time_of_taken(event) >= time_ns; });
  for (auto event = events_.begin(); event != first_held; ++event) {
    released_ns_ = time_of_taken(*event);
    std::visit([this](auto& any) { queue_.push(std::move(any)); }, *event);
  }
  events_.erase(events_.begin(), first_held);
  bytes_ = 0;
  for (const TakenEvent& event : events_) {
    bytes_ += sizeof event;
    if (const auto* sample = std::get_if<TakenSample>(&event))
      bytes_ += sample->stack.size();
  }
}

}  // namespace pe::record
