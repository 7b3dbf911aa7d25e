// Reads any bytes as the shared memory of a process that samples itself.  Whatever the numbers in
// it are, samples are within the bytes that were read and of that process, names are short, and the
// reader continues.
//
// The input is the header, then slots of threads, then for each of the first rings its length in 16
// bits and its bytes.
// SPDX-License-Identifier: MIT
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "inprocess/sampler/collector.h"
#include "support/shared_samples.h"

namespace {

using namespace pe;
using pe::testing::SharedSamples;

void check(bool holds) {
  if (!holds)
    std::abort();
}

class Checks : public inprocess::Events {
 public:
  void on_process(const inprocess::ProcessBegan& process) override {
    check(process.command.size() < 16 && process.maps.size() <= inprocess::kMaxMapsBytes);
  }
  void on_thread(const inprocess::ThreadOf& thread, std::uint64_t /*time_ns*/) override {
    check(thread.name.size() < 16);
    ++threads;
  }
  void on_sample(const inprocess::ThreadOf& thread, const stream::Sample& sample) override {
    check(sample.pid == static_cast<std::uint32_t>(thread.pid));
    check(sample.tid == static_cast<std::uint32_t>(thread.tid));
    check(sample.period >= kNsPerSecond / SharedSamples::kHz);
    check(sample.user_regs.size() == inprocess::kRegisters);
    check(sample.user_stack.size() <= SharedSamples::kRingBytes);
    for (const std::byte byte : sample.user_stack)
      sum += static_cast<unsigned>(byte);
  }
  void on_thread_end(const inprocess::ThreadOf& /*thread*/) override { check(threads-- > 0); }
  void on_process_end(pid_t /*pid*/) override { check(threads == 0); }

  int threads = 0;
  unsigned sum = 0;
};

constexpr std::uint32_t kThreads = 4;

void fill(SharedSamples& samples, Bytes input) {
  ByteReader reader(input);
  const inprocess::Header usual = samples.header;
  if (const auto header = reader.take<inprocess::Header>())
    samples.header = *header;
  samples.header.magic = usual.magic;
  samples.header.hz = usual.hz;
  samples.header.ring_bytes = usual.ring_bytes;
  samples.header.max_threads = usual.max_threads;
  for (std::uint32_t slot = 0; slot < kThreads; ++slot)
    if (const auto thread = reader.take<inprocess::Thread>())
      samples.put_thread(slot, *thread);
  for (std::uint32_t slot = 0; slot < kThreads; ++slot) {
    const auto length = reader.take<std::uint16_t>();
    if (const auto bytes = length ? reader.take_bytes(*length) : std::nullopt)
      samples.put_ring(slot, *bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  Checks checks;
  inprocess::Collector collector(checks, {});
  for (int i = 0; i < 2; ++i) {  // the second is another program of the same process
    SharedSamples samples;
    fill(samples, {data, size});
    samples.send_to(collector.listener());
    collector.pass();
    collector.pass();
    check(collector.running() <= 1);
  }
  return 0;
}
