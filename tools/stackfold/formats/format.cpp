// SPDX-License-Identifier: MIT
#include "stackfold/formats/format.h"

#include <algorithm>
#include <cstring>

#include "folded/folded_line.h"
#include "stackfold/formats/perf_script/perf_script_collapser.h"
#include "stackfold/formats/perf_script/sample_line.h"
#include "stackfold/formats/pprof/pprof.h"
#include "stackfold/formats/pprof/pprof_raw.h"
#include "stackfold/formats/readers.h"
#include "stream/records/record.h"

namespace pe::fold {
namespace {

bool is_stream(std::string_view head) {
  std::uint64_t magic = 0;
  if (head.size() < sizeof magic)
    return false;
  std::memcpy(&magic, head.data(), sizeof magic);
  return magic == stream::kMagic || magic == stream::kMagicOtherByteOrder;
}

/// Formats with a distinctive mark precede those that only the shape of their lines identifies.
constexpr Format kFormats[] = {
    {"stream", is_stream, nullptr, {.times = true, .modules = true}},
    {"pprof", pprof::looks_like, pprof::fold},
    {"pprof-raw", pprof_raw::looks_like, pprof_raw::fold},
    {"speedscope", speedscope::looks_like, speedscope::fold},
    {"ghc-prof", ghc_prof::looks_like, ghc_prof::fold},
    {"vtune", vtune::looks_like, vtune::fold, {.modules = true}},
    {"visual-studio", visual_studio::looks_like, visual_studio::fold, {.modules = true}},
    {"xctrace", xctrace::looks_like, xctrace::fold, {.modules = true}},
    {"flamegraph", flamegraph::looks_like, flamegraph::fold, {.events = false}},
    {"jstack", jstack::looks_like, jstack::fold},
    {"macos-sample", macos_sample::looks_like, macos_sample::fold, {.waits = true}},
    {"simpleperf", simpleperf::looks_like, simpleperf::fold, {.times = true}},
    {"memleak", memleak::looks_like, memleak::fold},
    {"eu-stack", backtrace::looks_like_eu_stack, backtrace::fold},
    {"gdb", backtrace::looks_like_gdb, backtrace::fold},
    {"bpftrace", bpftrace::looks_like, bpftrace::fold},
    {"bcc", stack_blocks::looks_like_bcc, stack_blocks::fold},
    {"dtrace", stack_blocks::looks_like, stack_blocks::fold},
    {"perf-script",
     perf_script::looks_like,
     perf_script::fold,
     {.times = true, .frame_lines = true, .modules = true},
     perf_script::fold_as_perl},
    {"folded", folded::looks_folded, nullptr, {.events = false}},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format& stream_format() { return kFormats[0]; }
const Format& folded_format() { return *(std::end(kFormats) - 1); }

}  // namespace pe::fold
