// Replaces bpf_object.cpp and target_filter.cpp where eBPF programs could not be compiled.
// SPDX-License-Identifier: MIT
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/target_filter.h"

namespace pe::unwind {

std::unique_ptr<BpfObject> load(const LoadOptions& /*options*/) {
  throw Unavailable("eBPF: this program was built without it");
}

std::unique_ptr<TargetFilter> load_target_filter() {
  throw Unavailable("eBPF: this program was built without it");
}

}  // namespace pe::unwind
