// Reads any bytes as the shared memory of a process that samples itself.  Whatever the numbers in
// it are, the recorder's records are whole, samples are of that process, threads end as often as
// they start, and the reader continues.
//
// The input is the header, then slots of threads, then for each of the first rings its length in 16
// bits and its bytes.
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "recording/signal/collector.h"
#include "support/shared_samples.h"

namespace {

using namespace pe;
using pe::testing::SharedSamples;

void check(bool holds) {
  if (!holds)
    std::abort();
}

/// The records of the recorder's ring.
class Checks {
 public:
  explicit Checks(const perf_event_attr& attr) : attr_(attr) {}

  void take(const stream::Record& record) {
    ByteReader reader(record.body());
    const auto ids = reader.take<std::array<std::uint32_t, 4>>();
    check(record.bytes.size() % 8 == 0 && ids.has_value());
    if (record.is_sample())
      return take_sample(record);
    if (record.type == PERF_RECORD_COMM)
      check(record.bytes.size() <= kMostOfName);
    if (record.type == PERF_RECORD_FORK && (*ids)[0] != (*ids)[2])
      threads_.insert((*ids)[2]);
    if (record.type == PERF_RECORD_EXIT)
      check((*ids)[0] == (*ids)[2] ? threads_.empty() : threads_.erase((*ids)[2]) == 1);
  }

 private:
  static constexpr std::size_t kMostOfName = 8 + 8 + 16 + 40;

  void take_sample(const stream::Record& record) {
    const auto sample = stream::parse_sample(record, attr_);
    check(sample.has_value());
    check(sample->pid == static_cast<std::uint32_t>(::getpid()));
    check(sample->tid == sample->pid || threads_.contains(sample->tid));
    check(sample->period >= kNsPerSecond / SharedSamples::kHz);
    check(sample->user_regs.size() == inprocess::kRegisters);
    check(sample->user_part.end == record.bytes.size());
  }

  perf_event_attr attr_;
  std::set<std::uint32_t> threads_;
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
  std::vector<std::string> notes;
  const recording::OpenedEvent event =
      recording::engine_event({.frequency_hz = SharedSamples::kHz}, notes);
  recording::EngineRing ring(std::size_t{1} << 22);
  recording::EngineRecords records(ring, event);
  Budget budget;
  records.read_scripts(budget);
  recording::Collector collector(records, {}, inprocess::kMostHz);
  Checks checks(event.attr);
  for (int i = 0; i < 2; ++i) {  // the second is another program of the same process
    SharedSamples samples;
    fill(samples, {data, size});
    samples.send_to(collector.listener());
    collector.pass();
    collector.pass();
    check(collector.running() <= 1);
    ring.rings().front().drain([&](const stream::Record& record) { checks.take(record); });
  }
  return 0;
}
