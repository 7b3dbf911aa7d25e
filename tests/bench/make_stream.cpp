// Writes an invented recording of one deeply nested program, the same in every run.
//
// Usage: make_stream SAMPLES FRAMES MODULE > stream
//
// The program calls functions of MODULE, an ELF file whose executable segment is mapped.  Each
// function has a few call sites; it uses the first most often.  So stacks share their outer frames,
// and most of them occur again, as in real recordings.  FRAMES is the usual depth; it varies by a
// third.  The records come from two rings, one after the other, in rounds of 1,000 samples, as a
// recorder on two CPUs writes them.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/io/output.h"
#include "base/parse_number.h"
#include "objects/image.h"
#include "stream/stream_writer.h"

namespace {

constexpr std::uint32_t kPid = 4242;
constexpr std::uint64_t kEventId = 7;
constexpr std::uint64_t kBase = 0x7f0000000000;  // where MODULE is mapped
constexpr std::uint64_t kTickNs = 1'000'000;

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
std::uint64_t mixed(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27U)) * 0x94d049bb133111eb;
  return state ^ (state >> 31U);
}

class Random {
 public:
  std::uint64_t below(std::uint64_t limit) { return mixed(state_++) % limit; }

 private:
  std::uint64_t state_ = 1;
};

/// The mapped file and its code.
struct Code {
  std::string path;
  std::uint64_t file_offset = 0, bytes = 0;
};

Code code_of(const std::string& path) {
  const auto opened = pe::objects::Image::open(path);
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  if (image == nullptr)
    throw pe::Error(path + ": not a readable ELF file");
  for (const pe::objects::Segment& segment : image->segments())
    if (segment.executable)
      return {path, segment.file_offset, segment.file_bytes};
  throw pe::Error(path + ": holds no code");
}

/// A random path of calls from the program's start; leaf first.
std::vector<std::uint64_t> made_chain(const Code& code, std::size_t usual_depth, Random& random) {
  constexpr std::uint64_t kFunctions = 4000;
  constexpr std::uint64_t kPlacesInLeaf = 16;
  const std::size_t depth = usual_depth - usual_depth / 3 + random.below(usual_depth * 2 / 3 + 1);
  std::vector<std::uint64_t> chain(depth);
  std::uint64_t function = 0;
  for (std::size_t level = 0; level < depth; ++level) {
    const std::uint64_t dice = random.below(100);
    std::uint64_t call = dice < 97 ? 0 : dice < 99 ? 1 : 2;
    if (level + 1 == depth)
      call = kPlacesInLeaf + random.below(kPlacesInLeaf);
    const std::uint64_t place = mixed(function * 1000 + call);
    chain[depth - 1 - level] = kBase + place % code.bytes;
    function = place % kFunctions;
  }
  return chain;
}

class Maker {
 public:
  explicit Maker(pe::Output& out) : out_(out), writer_(out) {}

  void begin(const Code& code) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                       PERF_SAMPLE_CALLCHAIN;
    attr.sample_id_all = 1;
    writer_.write_header();
    writer_.write_attr(attr, std::vector{kEventId});
    builder_.begin(PERF_RECORD_COMM).add(kPid).add(kPid).add_string("made-up");
    finish_with_trailer();
    constexpr std::uint32_t kReadExec = 5;
    builder_.begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER)
        .add(kPid)
        .add(kPid)
        .add(kBase)
        .add(code.bytes)
        .add(code.file_offset)
        .add_bytes(std::string(24, '\0'))  // device, inode, generation: unknown
        .add(kReadExec)
        .add(std::uint32_t{0})
        .add_string(code.path);
    finish_with_trailer();
  }

  void sample(std::uint64_t time_ns, const std::vector<std::uint64_t>& chain) {
    builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
        .add(kEventId)
        .add(chain.front())
        .add(kPid)
        .add(kPid)
        .add(time_ns)
        .add(std::uint64_t{0})  // the CPU
        .add(kTickNs)
        .add(std::uint64_t{chain.size() + 1})
        .add(static_cast<std::uint64_t>(PERF_CONTEXT_USER));
    for (const std::uint64_t address : chain)
      builder_.add(address);
    out_.write(builder_.finish());
  }

  void end_round() { writer_.write_finished_round(); }
  void end() { writer_.write_end(); }

 private:
  /// Adds the fields that sample_id_all requires in records other than samples.
  void finish_with_trailer() {
    builder_.pad().add(kPid).add(kPid).add(std::uint64_t{1}).add(std::uint64_t{0}).add(kEventId);
    out_.write(builder_.finish());
  }

  pe::Output& out_;
  pe::stream::StreamWriter writer_;
  pe::stream::RecordBuilder builder_;
};

void make_stream(const Code& code, std::size_t samples, std::size_t frames, pe::Output& out) {
  constexpr std::size_t kRound = 1000;
  Maker maker(out);
  Random random;
  maker.begin(code);
  for (std::size_t first = 0; first < samples; first += kRound) {
    const std::size_t end = std::min(samples, first + kRound);
    for (std::size_t ring = 0; ring < 2; ++ring)
      for (std::size_t i = first + ring; i < end; i += 2)
        maker.sample((i + 2) * kTickNs, made_chain(code, frames, random));
    maker.end_round();
  }
  maker.end();
  out.flush();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto samples =
      args.size() == 3 ? pe::parse_number<std::size_t>(args[0]) : std::optional<std::size_t>();
  const auto frames = samples ? pe::parse_number<std::size_t>(args[1]) : samples;
  constexpr std::size_t kMostFrames = 1000;  // a record cannot hold more
  if (!frames || *frames == 0 || *frames > kMostFrames) {
    std::fputs("Usage: make_stream SAMPLES FRAMES MODULE\n", stderr);
    return 2;
  }
  try {
    pe::FdOutput out(STDOUT_FILENO, "stdout");
    make_stream(code_of(args[2]), *samples, *frames, out);
  } catch (const pe::Error& error) {
    fmt::print(stderr, "make_stream: {}\n", error.what());
    return 1;
  }
  return 0;
}
