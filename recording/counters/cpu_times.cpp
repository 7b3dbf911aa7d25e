// SPDX-License-Identifier: MIT
#include "recording/counters/cpu_times.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/clock.h"
#include "base/io/input.h"
#include "base/text.h"
#include "recording/target_options.h"

namespace pe::recording {

std::vector<int> online_cpus() {
  constexpr std::size_t kMaxBytes = 64UL * 1024;
  auto text = read_small_file("/sys/devices/system/cpu/online", kMaxBytes);
  while (text && text->ends_with('\n'))
    text->pop_back();
  auto cpus = text ? parse_cpu_list(*text) : std::nullopt;
  if (cpus)
    return *cpus;
  std::vector<int> counted(static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))));
  for (std::size_t i = 0; i < counted.size(); ++i)
    counted[i] = static_cast<int>(i);
  return counted;
}

void describe_cpus(std::span<const CpuTime> times, std::span<const int> online, Closing& closing) {
  // Counters of very many CPUs start and stop one after the other.
  constexpr std::uint64_t kUsualNs = 100'000'000;
  constexpr std::string_view kFix = "record again while all CPUs are online";
  if (times.empty())
    return;
  const std::uint64_t most_ns = std::ranges::max(times, {}, &CpuTime::sampled_ns).sampled_ns;
  std::uint64_t gone = 0, missing_ns = 0;
  for (const CpuTime& time : times)
    if (time.sampled_ns + kUsualNs < most_ns) {
      ++gone;
      missing_ns += most_ns - time.sampled_ns;
    }
  if (gone > 0)
    closing.doubt(fmt::format("{} went offline and had no samples from then on, {:.2f} s in all",
                              plural(gone, "CPU"), static_cast<double>(missing_ns) / kNsPerSecond),
                  kFix);
  const auto late = std::ranges::count_if(online, [times](int cpu) {
    return std::ranges::find(times, cpu, &CpuTime::cpu) == times.end();
  });
  if (late > 0)
    closing.doubt(plural(static_cast<std::uint64_t>(late), "CPU") +
                      " came online during the recording and had no samples",
                  kFix);
}

}  // namespace pe::recording
