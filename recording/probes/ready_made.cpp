// SPDX-License-Identifier: MIT
#include "recording/probes/ready_made.h"

#include <array>

namespace pe::recorder {
namespace {

struct ReadyMade {
  std::string_view name, event;
  std::string_view field = {}, filter = {};
};

// A received length with MSG_PEEK (2) will be received again.
constexpr std::array kReadyMade{
    ReadyMade{"io", "block:block_rq_issue", "bytes"},
    ReadyMade{"net", "sock:sock_send_length", "ret", "protocol == 6"},
    ReadyMade{"net", "sock:sock_recv_length", "ret", "protocol == 6 && !(flags & 2)"},
    ReadyMade{"faults", "page-faults"},
    ReadyMade{"writes", "syscalls:sys_exit_write", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwrite64", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_writev", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwritev", "ret"},
    ReadyMade{"writes", "syscalls:sys_exit_pwritev2", "ret"},
};

}  // namespace

std::vector<std::string> ready_made_names() {
  std::vector<std::string> names;
  for (const ReadyMade& each : kReadyMade)
    if (names.empty() || names.back() != each.name)
      names.emplace_back(each.name);
  return names;
}

bool add_ready_made(std::string_view name, recording::Request& request, WantedWeights& weights) {
  bool is_found = false;
  for (const ReadyMade& each : kReadyMade) {
    if (each.name != name)
      continue;
    is_found = true;
    const std::string event(each.event);
    request.events.push_back(event);
    request.shown_names[event] = each.name;
    request.each_pass.insert(event);
    if (!each.field.empty())
      weights[event] = {.field = std::string(each.field), .unit = "bytes"};
    if (!each.filter.empty())
      request.filters[event] = each.filter;
  }
  return is_found;
}

}  // namespace pe::recorder
