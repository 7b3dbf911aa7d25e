// Parses the names of probes, as bpftrace writes them:
//
//     uprobe:PATH:FUNC[+OFF]      each call of a function (or its byte OFF)
//     uretprobe:PATH:FUNC         each return of a function
//     usdt:PATH:PROVIDER:NAME     a static probe, which the program's author placed
//     kprobe:FUNC[+OFF]  kretprobe:FUNC        the same in the kernel
//
// FUNC is a symbol, a C++ or Rust name with or without parameters, a pattern with * and ?, a line
// ("file.c:12"), or an address in the file's own addresses ("0x1234").  PATH may be left out with
// its colon: then it is the recorded program.  Reads no file.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Patterns for names: * is any text, ? is any letter.

namespace pe {

inline bool is_pattern(std::string_view text) noexcept {
  return text.find_first_of("*?") != text.npos;
}

/// Returns whether the whole `text` matches.  Takes at most the product of both lengths.
inline bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0;
  std::size_t star = pattern.npos, retry = 0;  // the last '*', and the text that it may still eat
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace pe

namespace pe::recording {

enum class ProbeKind : std::uint8_t { kUprobe, kUretprobe, kUsdt, kKprobe, kKretprobe };

struct ProbeName {
  ProbeKind kind = ProbeKind::kUprobe;
  std::string path = {};      ///< empty: the recorded program; not of kernel probes
  std::string provider = {};  ///< of kUsdt; empty: any
  std::string function = {};  ///< or the name of kUsdt; empty if there is a line or an address
  std::uint64_t offset = 0;   ///< bytes after the function's start
  std::optional<std::uint64_t> address = {};  ///< svma
  std::string source_file = {};               ///< of a line
  std::uint64_t line = 0;

  [[nodiscard]] bool is_of_kernel() const noexcept {
    return kind == ProbeKind::kKprobe || kind == ProbeKind::kKretprobe;
  }
  [[nodiscard]] bool is_return() const noexcept {
    return kind == ProbeKind::kUretprobe || kind == ProbeKind::kKretprobe;
  }
};

/// Returns whether the text starts like a probe: "uprobe:".
bool is_probe(std::string_view text);

/// Throws UsageError "--event: 'uprobe:': …".  Neither file nor function need exist.
ProbeName parse_probe(const std::string& text);

/// Returns "uprobe", "usdt" and so on.
std::string_view word_of(ProbeKind kind);

/// Returns the length of the probe with which `list` starts: up to a comma that is not between
/// brackets, as those of "f(int, char)" and "f<int, char>" are.
std::size_t length_of_probe(std::string_view list);

}  // namespace pe::recording
