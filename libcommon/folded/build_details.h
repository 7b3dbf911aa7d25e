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

#include <string>
#include <string_view>

namespace pe::folded {

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
