// The languages whose functions have names: a row for each.
//
// For C++; the rows of interpreters are also for the kernel's programs.  A new language needs a row
// here.  An interpreter also needs its layout here, its walks in common/walk.h and
// common/walk.bpf.h, and an Interpreter in its folder (common/interpreter.h); a virtual machine a
// member of Runtimes (runtimes.h).
// SPDX-License-Identifier: MIT
#pragma once

#include "languages/php/layout.h"
#include "languages/python/layout.h"
#include "languages/ruby/layout.h"

#ifdef __cplusplus
#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace pe::languages {
#endif

/// ROW(Python, python): the two forms of its name.
#define PE_FOR_EACH_INTERPRETER(ROW) \
  ROW(Python, python)                \
  ROW(Php, php)                      \
  ROW(Ruby, ruby)

#define PE_NUMBER(Name, name) kScript##Name,
enum ScriptLanguage { PE_FOR_EACH_INTERPRETER(PE_NUMBER) };
#undef PE_NUMBER

/// Where an interpreter keeps its threads, frames and functions.
struct ScriptLayout {
  uint32_t language;  ///< ScriptLanguage: the valid member
  union {
#define PE_MEMBER(Name, name) struct Name##Layout name;
    PE_FOR_EACH_INTERPRETER(PE_MEMBER)
#undef PE_MEMBER
  };
};

#ifdef __cplusplus
/// The facts of a language that messages, manuals and other parts of the tools use.
struct Language {
  std::string_view name;        ///< "Python"
  std::string_view versions;    ///< those whose functions have names: "3.11 to 3.15"
  std::string_view program;     ///< how its program is called: "python"; empty: it has a library
  std::string_view library;     ///< how its library is called, or its name starts: "libpython"
  std::string_view unreadable;  ///< a frame whose function is unreadable
  std::string_view own_names;   ///< how a program itself can supply names; "%": its process
  /// The native function that represents an interpreter; empty: it is a virtual machine.
  std::string_view function = {};
  bool has_embedded_code =
      false;  ///< of a virtual machine: its file has code without unwind tables

  [[nodiscard]] constexpr bool is_interpreter() const noexcept { return !function.empty(); }
};

inline constexpr Language kJava{.name = "Java",
                                .versions = "17 to 27",
                                .program = {},
                                .library = "libjvm.so",
                                .unreadable = "[java: unreadable]",
                                .own_names =
                                    "run `jcmd % Compiler.perfmap`, and start it with "
                                    "-XX:+PreserveFramePointer for complete stacks"};
inline constexpr Language kNode{.name = "Node",
                                .versions = "18, 20, 22, 24, 25 and 26",
                                .program = "node",
                                .library = "libnode.so",
                                .unreadable = "[node: unreadable]",
                                .own_names = "start it with --perf-basic-prof",
                                .has_embedded_code = true};
inline constexpr Language kPhp{.name = "PHP",
                               .versions = "8.0 to 8.5 without threads",
                               .program = "php",
                               .library = "libphp",
                               .unreadable = "[php: unreadable]",
                               .own_names = "start it with -d opcache.jit_debug=16 and its JIT on",
                               .function = "execute_ex"};
inline constexpr Language kRuby{.name = "Ruby",
                                .versions = "3.0 to 3.4",
                                .program = "ruby",
                                .library = "libruby",
                                .unreadable = "[ruby: unreadable]",
                                .own_names = "start it with --yjit --yjit-perf (3.3 and later)",
                                .function = "ruby_run_node"};
inline constexpr Language kPython{.name = "Python",
                                  .versions = "3.11 to 3.15",
                                  .program = "python",
                                  .library = "libpython",
                                  .unreadable = "[python: unreadable]",
                                  .own_names = "start it with -X perf (3.12 and later)",
                                  .function = "_PyEval_EvalFrameDefault"};

/// A process is of the first that matches: a JVM may have libpython mapped, but not the other way
/// round.
inline constexpr std::array kLanguages{&kJava, &kNode, &kPhp, &kRuby, &kPython};

/// Returns the virtual machine that a mapped file may have, by its path; null if it has none.
inline const Language* machine_of(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const Language* const language : kLanguages) {
    const bool has_name = language->program.empty()
                              ? name == language->library
                              : name.find(language->program) != std::string_view::npos;
    if (!language->is_interpreter() && has_name && path.starts_with('/') && !path.starts_with("//"))
      return language;
  }
  return nullptr;
}

/// Returns whether a file may have an interpreter, by its path.
inline bool may_be_interpreter(std::string_view path) {
  const std::string_view name = file_name(path);
  return std::ranges::any_of(kLanguages, [name](const Language* language) {
    return language->is_interpreter() && name.find(language->program) != std::string_view::npos;
  });
}
}  // namespace pe::languages
#endif
