// SPDX-License-Identifier: MIT
#include "pe-record/engine_advice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "recording/ptrace/ptrace_refusal.h"
#include "recording/signal/signal_engine.h"
#include "stream/proc/own_rights.h"

namespace pe::recorder {
namespace {

using recording::Engine;
using stream::Capability;

bool has_rights_for_bpf() {
  using stream::has_capability;
  return stream::has_capability(stream::Capability::kSysAdmin) ||
         (stream::has_capability(stream::Capability::kBpf) &&
          stream::has_capability(stream::Capability::kPerfmon));
}

/// Returns what keeps the engine ptrace from the target; empty if nothing does.
std::string problem_of_ptrace(const Options& options) {
  if (!options.not_by_ptrace.empty())
    return options.not_by_ptrace;
  if (std::string why = recording::why_no_ptrace(); !why.empty())
    return why;
  const recording::Target& target = options.target;
  constexpr int kOfCommands = 1;  // a scope of 1 allows the tracing of children
  const int scope = recording::ptrace_scope();
  if (scope == 0 || stream::has_capability(stream::Capability::kSysPtrace) ||
      (scope == kOfCommands && target.is_command))
    return {};
  const auto& ids = target.processes.empty() ? target.threads : target.processes;
  return ids.empty() ? "" : recording::why_not_traced(ids.front(), EPERM);
}

std::string fix_of_scripts(const Options& options) {
  if (options.not_by_bpf.empty() && has_rights_for_bpf())
    return "use --engine bpf";
  if (options.not_by_signal.empty() && recording::why_no_signals().empty())
    return "use --engine signal";
  const std::string problem = problem_of_ptrace(options);
  if (problem.empty())
    return "use --engine ptrace";
  if (!options.not_by_bpf.empty())
    return options.not_by_bpf + "; --engine ptrace " + problem;
  const std::string for_bpf =
      ::geteuid() == 0 ? "--engine bpf needs CAP_BPF and CAP_PERFMON" : "--engine bpf needs root";
  return options.not_by_ptrace.empty() ? fmt::format("{}; --engine ptrace: {}", for_bpf, problem)
                                       : for_bpf;
}

}  // namespace

EngineAdvice::EngineAdvice(const Options& options)
    : may_use_bpf(options.not_by_bpf.empty() && has_rights_for_bpf()),
      if_scripts(fix_of_scripts(options)) {}

std::string if_cut(const recording::Request& request, std::uint64_t cut_bytes,
                   const EngineAdvice& advice) {
  if (request.engine == Engine::kBpf)
    return "copies cannot be larger";
  // The head of a record takes a part of the largest copy.
  constexpr std::uint64_t kMostOfHead = 1024;
  if (cut_bytes + kMostOfHead >= recording::kMaxStackBytes) {
    if (!request.may_continue)
      return "leave out --no-continue";
    return advice.may_use_bpf ? "copies cannot be larger: use --engine bpf, which needs none"
                              : "copies cannot be larger";
  }
  constexpr std::uint64_t kCopiesOfRing = 4;  // those for which a thread's ring has room
  const std::uint64_t ring_bytes =
      request.ring_pages.value_or(0) * static_cast<std::uint64_t>(::getpagesize());
  const bool is_of_ring = request.engine == Engine::kSignal
                              ? request.ring_pages && cut_bytes + 8 > ring_bytes / kCopiesOfRing
                              : !request.stack_bytes;
  return is_of_ring ? "raise --mmap-pages, or ulimit -l" : "raise --stack-size";
}

}  // namespace pe::recorder
