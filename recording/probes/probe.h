// A probe that the kernel can open: the places of a ProbeName.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recording/probes/probe_name.h"
#include "recording/probes/probed_image.h"

namespace pe::recording {

struct Probe {
  ProbeKind kind = ProbeKind::kUprobe;
  /// The path by which the kernel finds `file`; of the kernel's probes: the function.
  std::string target = {};
  std::shared_ptr<const ProbedImage> file = {};  ///< null: of the kernel
  /// In the file; of kUretprobe: the function's returns; of the kernel's probes: in the function.
  /// At least one: a name may be that of several functions.
  std::vector<std::uint64_t> offsets = {};
  /// The file's place of a counter that the kernel raises while the probe exists: a program that
  /// checks it passes a static probe only then.  0: none.
  std::uint64_t semaphore_offset = 0;
  std::string arguments = {};  ///< of a static probe: "8@%rdi -4@$5", untrusted
  std::string note = {};       ///< a line for the user: what differs from the kind's other probes

  [[nodiscard]] bool is_of_kernel() const noexcept {
    return kind == ProbeKind::kKprobe || kind == ProbeKind::kKretprobe;
  }
};

}  // namespace pe::recording
