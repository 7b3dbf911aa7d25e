// SPDX-License-Identifier: MIT
#include "recording/own_rights.h"

#include <sys/prctl.h>

#include <string>
#include <string_view>

#include "base/parse_number.h"
#include "io/input.h"
#include "perf/counter.h"
#include "perf/event.h"

namespace pe::recording {

bool has_capability(Capability capability) {
  constexpr std::size_t kMaxBytes = 64UL * 1024;
  const auto text = io::read_small_file("/proc/self/status", kMaxBytes);
  constexpr std::string_view kKey = "\nCapEff:\t";
  const auto at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos)
    return false;
  constexpr int kBase = 16;
  constexpr std::size_t kDigits = 16;
  const auto set =
      parse_number<std::uint64_t>(std::string_view(*text).substr(at + kKey.size(), kDigits), kBase);
  return set && (*set >> static_cast<unsigned>(capability) & 1) != 0;
}

int try_own_counter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  perf::set_event(attr, "cpu-clock");
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  int error = 0;
  return perf::open_counter(attr, {.pid = 0}, error) ? 0 : error;
}

int seccomp_mode() {
  const int mode = ::prctl(PR_GET_SECCOMP);
  return mode < 0 ? 0 : mode;
}

}  // namespace pe::recording
