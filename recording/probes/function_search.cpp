// SPDX-License-Identifier: MIT
#include "recording/probes/function_search.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "names/demangle.h"
#include "objects/symbol_table.h"
#include "recording/glob.h"

namespace pe::names {
namespace {

/// Removes a version: "memcpy@@GLIBC_2.14".  "f@plt" is another function.
std::string_view without_version(std::string_view symbol) {
  const auto at = symbol.find('@');
  return at == symbol.npos || symbol.substr(at) == "@plt" ? symbol : symbol.substr(0, at);
}

/// Is it a part of a function, which the compiler has moved away?
bool is_part(std::string_view symbol) {
  return symbol.ends_with(".cold") || symbol.find(".cold.") != symbol.npos;
}

bool is_mangled(std::string_view symbol) {
  return symbol.starts_with("_Z") || symbol.starts_with("_R") || symbol.starts_with("_D");
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns the last identifier before the parameters.  A mangled name has it, too, so that few
/// names must be demangled: "flush" of "std::ostream::flush()", of which the mangled name
/// abbreviates the rest.  Empty for an operator, which is mangled differently.
std::string_view last_identifier(std::string_view name) {
  name = name.substr(0, name.find_first_of("(<"));
  std::size_t start = name.size();
  while (start > 0 && is_letter(name[start - 1]))
    --start;
  const std::string_view word = name.substr(start);
  return name.find("operator") == name.npos ? word : std::string_view();
}

/// Is `full`, as c++filt prints it, that name?  The user may leave the return type of a template
/// out, and the space in "f(int, char)".
bool is_full_name(std::string_view full, std::string_view name) {
  return full == name || (full.size() > name.size() && full.ends_with(name) &&
                          full[full.size() - name.size() - 1] == ' ');
}

}  // namespace

FunctionSearch::FunctionSearch(const objects::Image& image, const std::string& path,
                               objects::DebugFinder& finder)
    : image_(image), has_symtab_(objects::has_symtab(image)) {
  if (has_symtab_)
    return;
  if (auto separate = finder.separate(image, path);
      separate && objects::has_symtab(separate->image))
    extra_ = std::make_unique<objects::Image>(std::move(separate->image));
  else if (auto mini = finder.mini(image, path))
    extra_ = std::make_unique<objects::Image>(std::move(*mini));
}

template <typename Visit>
void FunctionSearch::visit(const Visit& on_function) const {
  objects::for_each_function(image_, on_function);
  if (extra_)
    objects::for_each_function(*extra_, on_function);
}

/// Returns the functions whose symbols `accepts` accepts, one for each address.
template <typename Accepts>
std::vector<FoundFunction> FunctionSearch::find(const Accepts& accepts) const {
  std::vector<FoundFunction> found;
  visit([&](const objects::FunctionSymbol& function) {
    const std::string_view symbol = without_version(function.name);
    if (!is_part(symbol) && accepts(symbol))
      found.push_back({.name = demangle(symbol),
                       .svma = function.svma,
                       .bytes = function.bytes,
                       .is_ifunc = function.is_ifunc});
  });
  // Of several names of an address, the shortest is the one that people know.
  std::sort(found.begin(), found.end(), [](const FoundFunction& a, const FoundFunction& b) {
    return std::tuple(a.svma, a.name.size(), a.name) < std::tuple(b.svma, b.name.size(), b.name);
  });
  found.erase(
      std::unique(found.begin(), found.end(),
                  [](const FoundFunction& a, const FoundFunction& b) { return a.svma == b.svma; }),
      found.end());
  return found;
}

std::vector<FoundFunction> FunctionSearch::named(const std::string& name) const {
  const bool has_parameters = name.find('(') != name.npos;
  const std::string_view word = last_identifier(name);
  return find([&](std::string_view symbol) {
    if (symbol == name)
      return true;
    if (!is_mangled(symbol) || symbol.find(word) == symbol.npos)
      return false;
    return demangle(symbol) == name ||
           (has_parameters && is_full_name(demangle_with_parameters(symbol), name));
  });
}

std::vector<FoundFunction> FunctionSearch::matching(const std::string& pattern) const {
  return find([&](std::string_view symbol) {
    return matches_pattern(pattern, symbol) ||
           (is_mangled(symbol) && matches_pattern(pattern, demangle(symbol)));
  });
}

std::vector<std::string> FunctionSearch::all_names() const {
  std::set<std::string> names;
  visit([&](const objects::FunctionSymbol& function) {
    if (!function.name.ends_with("@plt"))
      names.insert(demangle(without_version(function.name)));
  });
  return {names.begin(), names.end()};
}

std::vector<std::string> FunctionSearch::containing(std::string_view word, std::size_t most) const {
  std::set<std::string> names;
  visit([&](const objects::FunctionSymbol& function) {
    const std::string_view symbol = without_version(function.name);
    if (!is_part(symbol) && symbol.find(word) != symbol.npos)
      names.insert(demangle(symbol));
  });
  std::vector<std::string> first(names.begin(), names.end());
  first.resize(std::min(first.size(), most));
  return first;
}

}  // namespace pe::names
