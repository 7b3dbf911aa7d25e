// Where PHP keeps the frames of its calls, and its functions.
//
// Builds without threads (NTS) have one stack of calls in a process: executor_globals has the
// innermost frame, a zend_execute_data, and each frame the one before it.
//
// Sources: offsetof() in a C program compiled with the headers of PHP 8.1.2, 8.2.36, 8.3.6,
// 8.4.27 and 8.5.7; Zend/zend_compile.h and zend_globals.h of PHP 8.0.
// For C++, and for the kernel's programs.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::languages {
using std::uint32_t;
#else
#include <stdint.h>
#endif

/// Offsets in bytes that differ between versions.
struct PhpLayout {
  uint32_t current;     ///< in executor_globals: the innermost frame
  uint32_t file;        ///< in zend_op_array: the file's name
  uint32_t first_line;  ///< four bytes
};

enum {
  kPhpInstruction = 0,  ///< in zend_execute_data, as the next ones
  kPhpFunction = 24,
  kPhpThis = 32,  ///< of a frame without a function, which delegates: its zend_generator
  kPhpCallInfo = 40,
  kPhpCaller = 48,
  kPhpFrameBytes = 56,
  kPhpGeneratorFrame = 56,  ///< in a zend_generator: its own frame

  kPhpType = 0,  ///< in zend_function, as the next two: one byte
  kPhpName = 8,
  kPhpScope = 16,
  kPhpHeadBytes = 24,       ///< functions in C have no more that is used
  kPhpFunctionBytes = 192,  ///< all used fields of a zend_op_array are within these bytes

  kPhpLine = 24,  ///< in zend_op: four bytes

  kPhpTextHash = 8,  ///< in zend_string, as the next two
  kPhpTextLength = 16,
  kPhpTextData = 24,
  kPhpClassName = 8,  ///< in zend_class_entry

  kPhpIsInternal = 1,  ///< zend_function::type of a function in C (ZEND_INTERNAL_FUNCTION)
  kPhpIsUser = 2,      ///< of one in PHP, as the next (ZEND_USER_FUNCTION, ZEND_EVAL_CODE)
  kPhpIsEval = 4,
  /// A bit of the call info: C has called the interpreter's loop for this frame (ZEND_CALL_TOP).
  kPhpTop = 1 << 17,
};

#ifdef __cplusplus
/// Versions are MAJOR << 8 | MINOR.  This bit: built with threads (ZTS).
inline constexpr std::uint64_t kPhpWithThreads = std::uint64_t{1} << 32U;
}  // namespace pe::languages
#endif
