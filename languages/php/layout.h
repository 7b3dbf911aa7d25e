// Where PHP keeps the frames of its calls, and its functions.
//
// Builds without threads (NTS) have one stack of calls in a process: executor_globals has the
// innermost frame, a zend_execute_data, and each frame the one before it.
//
// Sources: offsetof() in a C program compiled with the headers of PHP 8.1.2, 8.2.36, 8.3.6 and
// 8.4.27; Zend/zend_compile.h and zend_globals.h of PHP 8.0.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace pe::languages {

/// Offsets in bytes that differ between versions.
struct PhpLayout {
  std::uint32_t file = 0;        ///< in zend_op_array: the file's name
  std::uint32_t first_line = 0;  ///< four bytes
};

/// In executor_globals: the innermost frame.
inline constexpr std::uint32_t kPhpCurrent = 488;
/// In zend_execute_data.
inline constexpr std::uint32_t kPhpInstruction = 0, kPhpFunction = 24, kPhpCallInfo = 40,
                               kPhpCaller = 48, kPhpFrameBytes = 56;
/// In zend_function: its type (one byte), name and class.  Functions in C have no more that is
/// used.
inline constexpr std::uint32_t kPhpType = 0, kPhpName = 8, kPhpScope = 16, kPhpHeadBytes = 24;
/// All used fields of a zend_op_array are within these bytes.
inline constexpr std::uint32_t kPhpFunctionBytes = 192;
/// In zend_op: four bytes.
inline constexpr std::uint32_t kPhpLine = 24;
/// In zend_string.
inline constexpr std::uint32_t kPhpTextHash = 8, kPhpTextLength = 16, kPhpTextData = 24;
/// In zend_class_entry.
inline constexpr std::uint32_t kPhpClassName = 8;

/// In a frame without a function that delegates to another generator: its zend_generator, and in
/// that its own frame.
inline constexpr std::uint32_t kPhpThis = 32, kPhpGeneratorFrame = 56;

/// zend_function::type of a function in C (ZEND_INTERNAL_FUNCTION).
inline constexpr std::uint8_t kPhpIsInternal = 1;
/// A bit of the call info: C has called the interpreter's loop for this frame (ZEND_CALL_TOP).
inline constexpr std::uint32_t kPhpTop = 1U << 17U;

/// Versions are MAJOR << 8 | MINOR.  This bit: built with threads (ZTS).
inline constexpr std::uint64_t kPhpWithThreads = std::uint64_t{1} << 32U;

/// Returns the layout of a version, or why it is unknown: "PHP 7.4".
std::variant<PhpLayout, std::string> php_layout(std::uint64_t version);

}  // namespace pe::languages
