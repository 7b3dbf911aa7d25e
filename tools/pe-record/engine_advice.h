// Which other engine would help, for closing lines: only one that works for this user and target.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "pe-record/options.h"
#include "recording/request.h"

namespace pe::recorder {

struct EngineAdvice {
  /// Must be constructed while this process has the privileges that it was started with.
  explicit EngineAdvice(const Options& options);

  bool may_use_bpf;        ///< the options and the user's privileges allow the engine bpf
  std::string if_scripts;  ///< the fix if the engine does not read the functions of scripts
};

/// Returns the fix for stacks that are deeper than their copies of `cut_bytes` bytes.
std::string if_cut(const recording::Request& request, std::uint64_t cut_bytes,
                   const EngineAdvice& advice);

}  // namespace pe::recorder
