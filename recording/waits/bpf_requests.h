// Loads the programs of the engine bpf, and makes the requests for the counters beside them.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "recording/bpf/bpf_object.h"
#include "recording/request.h"
#include "recording/waits/choice.h"

namespace pe::waits {

/// Loads the kernel's programs.  Throws unwind::Unavailable, or Error.
std::unique_ptr<unwind::BpfObject> load_programs(const Options& options,
                                                 const recording::Target& target);
/// Requests only the changes of processes, and marks of calls.
recording::Request side_request(const recording::Request& asked);
/// Requests samples of CPU time: a clock's, because no interrupt may come while the kernel's
/// programs handle a switch.
recording::Request sample_request(const recording::Request& asked);
/// Replaces threads by their processes, which all of their threads may change.
recording::Target whole_processes(const recording::Target& target);
/// Returns the processes whose code may be walked: anybody may be a waker.
recording::Target with_sources(const recording::Target& target, const WaitChoice& choice);

}  // namespace pe::waits
