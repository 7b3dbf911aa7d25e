// Functions of interpreters and other runtimes in the stream.
//
// No file has machine code of such a function.  The recorder gives it a range of addresses that no
// program on x86-64 can have, and writes it as a mapping (PERF_RECORD_MMAP2).  So perf can read the
// stream, and a function belongs to its process like any other code.  The mapping's path is
//
//     [python] FUNCTION FILE:LINE
//
// or starts with one of the other marks, which name the runtime and the kind of the function.
// LINE is the function's first line.  In FUNCTION and FILE, each blank, backslash and control
// character is a backslash and three octal digits, as in /proc/PID/mounts.  The address of a frame
// is the start of the range, plus its current line, less LINE.  In call chains one is added to all
// but the innermost frame, as to return addresses.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::stream {

/// The range of all these functions, and the size of each one's own range.  It is not canonical, so
/// it is in neither the program's nor the kernel's half of the address space.
inline constexpr std::uint64_t kScriptStart = 0x00fe'0000'0000'0000;
inline constexpr std::uint64_t kScriptEnd = 0x00ff'0000'0000'0000;
inline constexpr std::uint64_t kScriptBytes = 0x10000;

/// The runtime of a function, and how it executes it.
enum class ScriptKind : std::uint8_t {
  kPython,
  kJava,          ///< by its interpreter
  kJavaCompiled,  ///< compiled at run time
  kJavaInlined,   ///< likewise, inlined into its caller
  kJavaStub,      ///< code that the runtime has made for its own purposes; without file and line
  kPhp,
  kRuby,
  kNode,  ///< by its interpreter
  kNodeCompiled,
  kNodeInlined,
  kNodeStub,
};
inline constexpr std::size_t kScriptKinds = 11;
/// Returns the mark with which the paths of such functions start, "[python]".
std::string_view script_mark(ScriptKind kind) noexcept;
/// Returns the name of its runtime, "Python".
std::string_view runtime_name(ScriptKind kind) noexcept;
/// Returns the flags that symbols of such functions have (kSymbolScript).
std::uint32_t script_flags(ScriptKind kind) noexcept;

/// A function, and the place where it starts.
struct ScriptFunction {
  std::string name;        ///< as its language shows it, in UTF-8
  std::string file;        ///< empty: unknown
  std::uint32_t line = 0;  ///< of its start; 0: unknown
  ScriptKind kind = ScriptKind::kPython;
  bool operator==(const ScriptFunction&) const = default;
};

/// Returns the first address of the function with that number.
constexpr std::uint64_t script_address(std::uint32_t number) noexcept {
  return kScriptStart + number * kScriptBytes;
}

/// Returns the path of its mapping.  It has at most 4000 bytes: longer names are cut.
std::string script_path(const ScriptFunction& function);
/// Returns the function of a mapping's path; nullopt if it has another form.
std::optional<ScriptFunction> parse_script_path(std::string_view path);
/// Returns whether a record is such a mapping.
bool is_script_mapping(const Record& record);

/// Starts its MMAP2 record.  The caller adds the trailer.
void build_script_mapping(RecordBuilder& builder, std::uint32_t pid, std::uint32_t number,
                          const ScriptFunction& function);

}  // namespace pe::stream
