// Finds functions of one image by name: the reverse of ModuleSymbols.
//
// A name is a symbol ("_ZN2ns1fEi"; a version after '@' may be left out), or a readable name with
// or without parameters, as demangle() and c++filt(1) print it ("ns::f", "ns::f(int)").  Searching
// libLLVM-14 (45,000 symbols) for a C++ name takes 20 ms, for a pattern 60 ms.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "objects/debug_file.h"
#include "objects/image.h"

namespace pe::names {

struct FoundFunction {
  std::string name;  ///< readable, without parameters
  std::uint64_t svma = 0;
  std::uint64_t bytes = 0;  ///< 0: the file does not state it
  bool is_ifunc = false;    ///< its code only chooses the function that runs
};

class FunctionSearch {
 public:
  /// `image` was opened as `path`.  Symbols come from it, and from its separate debug file or
  /// .gnu_debugdata.
  FunctionSearch(const objects::Image& image, const std::string& path,
                 objects::DebugFinder& finder);

  /// Returns the functions of that name, by address: overloads, local functions of several files.
  /// Parts that the compiler moved away ("f.cold") do not count.
  [[nodiscard]] std::vector<FoundFunction> named(const std::string& name) const;
  /// Returns the functions whose symbol or readable name matches a pattern (recording/glob.h), by
  /// address.
  [[nodiscard]] std::vector<FoundFunction> matching(const std::string& pattern) const;
  /// Returns the readable names that contain `word`, sorted; at most `most`.
  [[nodiscard]] std::vector<std::string> containing(std::string_view word, std::size_t most) const;
  /// Returns all readable names, unsorted.
  [[nodiscard]] std::vector<std::string> all_names() const;

  /// Is there no full symbol table anywhere?  Only exported functions have names.
  [[nodiscard]] bool is_stripped() const noexcept { return extra_ == nullptr && !has_symtab_; }

 private:
  template <typename Accepts>
  [[nodiscard]] std::vector<FoundFunction> find(const Accepts& accepts) const;
  template <typename Visit>
  void visit(const Visit& on_function) const;

  const objects::Image& image_;
  bool has_symtab_;
  std::unique_ptr<objects::Image> extra_;  ///< with more symbols; null: none
};

}  // namespace pe::names
