// When the recording of a process starts; for the kernel's programs and user space.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
namespace pe::unwind {
#endif

/// A value of the map `targets`.
enum TargetStart {
  kTargetAfterExec,  ///< a command: from its exec on
  kTargetStarted,
};

#ifdef __cplusplus
}  // namespace pe::unwind
#endif
