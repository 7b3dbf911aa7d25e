// Removes what differs between builds and runs of a program from the names of functions.
//
// Compilers and virtual machines number functions without a name, parts and copies of functions,
// and generated classes.  The numbers change with the next build, or with the order in which
// classes load.  This is the only place that has such rules; flamediff compares by it, and
// `stackfold --strip-names` folds by it, also for the commands in Python.
//
// The rules are heuristics about names.  They give different functions of one build the same name,
// such as two lambdas of one function; whoever folds the names adds up their counts.  They also
// rewrite a function whose real name is `f.cold`.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// One regular expression that is searched for in frame names.
//
// The syntax is RE2's (https://github.com/google/re2/wiki/Syntax).  RE2 matches in time
// proportional to the text and without recursion, even for malicious expressions and names.
// std::regex recurses over the text, and backtracking engines take exponential time.

namespace re2 {
class RE2;
}

namespace pe::folded {

enum class Letters : std::uint8_t { kUtf8, kBytes };

/// Compiles `text`; ok() and error() of the result tell whether it is an expression.  All
/// expressions are compiled here.
std::unique_ptr<re2::RE2> compile(std::string_view text, Letters letters = Letters::kUtf8);

class Expression {
 public:
  /// If `text` is not a regular expression, returns nullopt and sets `why` to the reason.
  static std::optional<Expression> parse(std::string_view text, std::string& why);
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// Returns the size of the compiled program in instructions: a measure of the memory that it
  /// takes, stored and while matching.
  [[nodiscard]] std::size_t size() const;
  /// Does the expression match anywhere in `text`?
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  explicit Expression(std::unique_ptr<re2::RE2> compiled);

  std::unique_ptr<re2::RE2> compiled_;
};

/// Returns `name` without these parts, and never an empty text for a name:
///  - endings of parts and copies of functions: .cold, .warm, .isra.0, .constprop.0, .part.0,
///    .__part.0, .lto_priv.0, .llvm.123, .__uniq.123, .clone.0, .localalias, .specialized.0, .abi0,
///    the same as demanglers write them (" [clone .cold]", " (.cold)"), and the tiers of JITs;
///  - the hashes of Rust;
///  - the numbers of lambdas, closures, blocks and anonymous classes in C++, Rust, Go, Swift, Java,
///    Kotlin, Scala, Clojure, C#, D, Zig, Erlang, OCaml and OpenMP, and of Julia's methods;
///  - the numbers, addresses and hashes of classes that Java generates: proxies, accessors, method
///    handles, hidden classes;
///  - the tags of BPF programs.
/// "0x..." replaces each other hexadecimal number that starts with 0x.  A mark such as _[k] stays.
/// The time is linear for every name.
std::string without_build_details(std::string_view name);

/// Replaces hexadecimal numbers that start with 0x by "0x...", as difffolded.pl -s does.
std::string without_hex_numbers(std::string_view text);

/// Returns a mark such as "_[k]" at the end of `name`; empty if there is none.
std::string_view mark_of(std::string_view name);

}  // namespace pe::folded
