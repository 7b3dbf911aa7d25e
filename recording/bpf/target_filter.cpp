// SPDX-License-Identifier: MIT
#include "recording/bpf/target_filter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <target_filter.skel.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "recording/bpf/bpf_object.h"
#include "recording/refused.h"
#include "stream/proc/own_rights.h"

namespace pe::unwind {
namespace {

struct FilterDeleter {
  void operator()(target_filter* skeleton) const { target_filter__destroy(skeleton); }
};
using FilterSkeleton = std::unique_ptr<target_filter, FilterDeleter>;

class LoadedFilter final : public TargetFilter {
 public:
  explicit LoadedFilter(FilterSkeleton skeleton) : skeleton_(std::move(skeleton)) {}

  bool add_target(std::uint32_t tgid, TargetStart start) override {
    const auto value = static_cast<std::uint32_t>(start);
    return bpf_map_update_elem(bpf_map__fd(skeleton_->maps.targets), &tgid, &value, BPF_ANY) == 0;
  }
  /// Does not use libbpf's own function, which would start the counter.
  void attach_to_counter(int counter, CounterKind kind) override {
    const auto& programs = skeleton_->progs;
    const int program =
        bpf_program__fd(kind == CounterKind::kProbe ? programs.keep_hits : programs.keep_targets);
    Fd link(bpf_link_create(program, counter, BPF_PERF_EVENT, nullptr));
    if (!link)
      throw_errno("eBPF: attaching to a counter", errno);
    links_.push_back(std::move(link));
  }
  [[nodiscard]] std::uint64_t not_followed() const override { return skeleton_->bss->targets_full; }

 private:
  FilterSkeleton skeleton_;
  std::vector<Fd> links_;
};

}  // namespace

void refuse_other_pid_namespaces() {
  if (!stream::is_in_first_pid_namespace())
    throw recording::Refused("eBPF: does not work in a separate pid namespace (a container)");
}

std::unique_ptr<TargetFilter> load_target_filter() {
  refuse_other_pid_namespaces();
  libbpf_set_print(nullptr);
  FilterSkeleton skeleton(target_filter__open_and_load());
  if (!skeleton)
    throw_errno("eBPF: loading the filter of processes", errno);
  if (const int error = target_filter__attach(skeleton.get()); error != 0)
    throw_errno("eBPF: attaching the filter of processes", -error);
  return std::make_unique<LoadedFilter>(std::move(skeleton));
}

}  // namespace pe::unwind
