// Replaces bpf_object.cpp and target_filter.cpp where eBPF programs could not be compiled.
// SPDX-License-Identifier: MIT
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/target_filter.h"
#include "recording/parts.h"
#include "recording/refused.h"

namespace pe::unwind {

std::unique_ptr<BpfObject> load(const LoadOptions& /*options*/) {
  throw recording::Refused(recording::why_left_out(recording::Part::kBpf));
}

std::unique_ptr<TargetFilter> load_target_filter() {
  throw recording::Refused(recording::why_left_out(recording::Part::kBpf));
}

}  // namespace pe::unwind
