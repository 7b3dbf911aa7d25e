// Runs a command and lets the kernel unwind its stacks.  Compares each stack with the one that the
// user-space unwinder finds in a copy taken at the same moment.
//
// Usage: kernel_stacks COMMAND...  Writes "name number" lines; `different` must be 0.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/bpf/bpf_object.h"
#include "recording/child.h"
#include "recording/refused.h"
#include "support/live_tables.h"
#include "unwind/address_space.h"
#include "unwind/stacks/images.h"
#include "unwind/walk/walker.h"

namespace {

using namespace pe;

/// A sample with its copy of the stack, kept until all mappings are known.
struct Taken {
  std::uint32_t tgid;
  bool is_reused;
  unwind::StackStop stop;
  std::vector<std::uint64_t> frames, registers;
  std::vector<std::byte> memory;
};

class UserSpace {
 public:
  explicit UserSpace(const stream::History& history) : history_(history) {}

  unwind::WalkResult walk(const Taken& taken, std::span<unwind::Frame> out) {
    unwind::WalkStart start;
    for (unsigned number = 0; number < taken.registers.size(); ++number)
      start.registers.set(number, taken.registers[number]);
    const unwind::StackView stack(start.registers.state().sp, taken.memory);
    return walker_.walk(space_of(taken.tgid), start, stack, out);
  }

  bool is_code(std::uint32_t tgid, std::uint64_t avma) {
    return space_of(tgid).find(avma) != nullptr;
  }

 private:
  unwind::AddressSpace& space_of(std::uint32_t tgid) {
    const auto [known, is_new] =
        spaces_.try_emplace(tgid, [this](std::uint32_t number) { return images_.table(number); });
    const auto* mapped = history_.processes().space(tgid);
    if (is_new && mapped != nullptr)
      for (const auto& [start, mapping] : mapped->all()) {
        const auto image = mapping.file->is_anonymous()
                               ? std::nullopt
                               : std::optional(images_.number_of(mapping, tgid));
        known->second.map({mapping.start, mapping.end, mapping.file_offset, image});
      }
    return known->second;
  }

  const stream::History& history_;
  unwind::Images images_{objects::FileMatch::kAny};
  std::map<std::uint32_t, unwind::AddressSpace> spaces_;
  unwind::RuleCache cache_;
  unwind::Walker walker_{cache_};
};

struct Tally {
  std::size_t samples = 0;
  std::size_t early = 0;     ///< the kernel did not know the mappings yet
  std::size_t same = 0;      ///< same frames, same end
  std::size_t further = 0;   ///< same as far as the copy reaches
  std::size_t given_up = 0;  ///< same, up to a row that the kernel cannot follow
  std::size_t complete = 0;  ///< the kernel reached the end of the stack, and was not early
  std::size_t different = 0;
};

bool is_prefix(std::span<const unwind::Frame> part, std::span<const std::uint64_t> whole) {
  if (part.size() > whole.size())
    return false;
  for (std::size_t i = 0; i < part.size(); ++i)
    if (part[i] != unwind::Frame(whole[i] & unwind::Frame::kMaxAddress,
                                 static_cast<unwind::FrameSource>(whole[i] >> 62),
                                 (whole[i] >> 61 & 1) != 0))
      return false;
  return true;
}

bool is_early(unwind::StackStop stop) {
  return stop == unwind::kStopUnknownProcess || stop == unwind::kStopStaleMappings ||
         stop == unwind::kStopChanged || stop == unwind::kStopUnmapped;
}

void show(const Taken& taken, std::span<const unwind::Frame> ours, unwind::Stop stop) {
  std::string text = fmt::format("# kernel {}:", static_cast<int>(taken.stop));
  for (const auto frame : taken.frames)
    text += fmt::format(" {:x}", frame);
  text += fmt::format("\n# ours {}:", to_string(stop));
  for (const auto frame : ours)
    text += fmt::format(" {:x}/{}{}", frame.address(), static_cast<int>(frame.source()),
                        frame.is_exact() ? "!" : "");
  fmt::print("{}\n", text);
}

void compare(const Taken& taken, UserSpace& user, Tally& tally) {
  static std::vector<unwind::Frame> frames(unwind::kMaxFrames);
  ++tally.samples;
  if (is_early(taken.stop)) {
    ++tally.early;
    return;
  }
  const auto result = user.walk(taken, frames);
  const auto ours = std::span(frames).first(result.frames);
  const auto shared = ours.first(std::min(ours.size(), taken.frames.size()));
  const bool agrees = is_prefix(shared, taken.frames);
  const bool ends_alike = static_cast<int>(taken.stop) == static_cast<int>(result.stop);
  tally.complete += taken.stop == unwind::kStopEndOfStack;
  if (agrees && ours.size() == taken.frames.size() && ends_alike) {
    ++tally.same;
  } else if (agrees && result.stop == unwind::Stop::kStackNotCaptured &&
             ours.size() <= taken.frames.size()) {
    ++tally.further;
  } else if (agrees && taken.stop == unwind::kStopUnsupported &&
             ours.size() >= taken.frames.size()) {
    ++tally.given_up;
  } else if (agrees && taken.stop == unwind::kStopBadReturnAddress &&
             ours.size() > taken.frames.size()) {
    ++tally.early;  // the mappings of user space contain this code by now
  } else {
    if (++tally.different <= 5)
      show(taken, ours, result.stop);
  }
}

std::vector<Fd> open_counters(pid_t pid, unwind::BpfObject& object) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.freq = 1;
  attr.sample_freq = 997;
  attr.inherit = 1;
  std::vector<Fd> counters;
  const auto cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    int error = 0;
    counters.push_back(stream::open_counter(attr, {.pid = pid, .cpu = cpu}, error));
    if (!counters.back())
      throw_errno("counter", error);
    object.attach_to_counter(counters.back().get(), 0);
  }
  return counters;
}

void run(const std::vector<std::string>& command) {
  const auto object = unwind::load(
      {.pass_on = unwind::kPassAll, .check_reuse = true, .ring_bytes = std::size_t{64} << 20});
  Child child = Child::start(command, 2, SignalState::now());
  testing::LiveTables live(child.pid(), *object);
  const auto counters = open_counters(child.pid(), *object);
  std::vector<Taken> all;
  const auto read = [&] {
    object->read_samples([&](const unwind::Sample& sample) {
      if (sample.registers.empty())
        return;
      all.push_back({sample.record.tgid,
                     false,
                     sample.stack.stop,
                     {sample.stack.frames.begin(), sample.stack.frames.end()},
                     {sample.registers.begin(), sample.registers.end()},
                     {sample.memory.begin(), sample.memory.end()}});
    });
  };
  child.go();
  while (!child.poll_status()) {
    live.update();
    read();
    pollfd wait{object->ring_fd(), POLLIN, 0};
    ::poll(&wait, 1, 5);
  }
  live.update();
  read();
  UserSpace user(live.history());
  Tally tally;
  for (const Taken& taken : all)
    compare(taken, user, tally);
  const auto counts = object->counts();
  fmt::print("samples {}\nearly {}\nsame {}\nfurther {}\ngiven_up {}\ncomplete {}\ndifferent {}\n",
             tally.samples, tally.early, tally.same, tally.further, tally.given_up, tally.complete,
             tally.different);
  fmt::print("reused {}\nwrong_reuse {}\nlost {}\n", counts.reused, counts.wrong_reuse,
             counts.ring_full + counts.stacks_full + counts.no_storage);
  for (int stop = 0; stop < unwind::kStackStopCount; ++stop)
    if (counts.stops[stop] != 0)
      fmt::print("stop_{} {}\n", stop, counts.stops[stop]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
  } catch (const recording::Refused& error) {
    fmt::print("skipped: {}\n", error.what());
    return 77;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_stacks: {}\n", error.what());
    return 1;
  }
  return 0;
}
