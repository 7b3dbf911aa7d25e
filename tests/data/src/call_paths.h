// Calls of many shapes, compiled several times with different options (tests/data/meson.build).
// SPDX-License-Identifier: MIT
#pragma once

struct CallPath {
  void (*leaf)(void*);  // the last function of the path
  void* data;
  int depth;
};

#define CALL_PATHS(PREFIX)                       \
  extern "C" {                                   \
  void PREFIX##_plain(const CallPath* path);     \
  void PREFIX##_recursive(const CallPath* path); \
  void PREFIX##_alloca(const CallPath* path);    \
  void PREFIX##_realigned(const CallPath* path); \
  void PREFIX##_sorting(const CallPath* path);   \
  void PREFIX##_copying(const CallPath* path);   \
  }

CALL_PATHS(o0)
CALL_PATHS(o2)
CALL_PATHS(o3)
CALL_PATHS(fp)
