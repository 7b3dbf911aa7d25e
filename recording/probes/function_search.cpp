// SPDX-License-Identifier: MIT
#include "recording/probes/function_search.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "names/demangle.h"
#include "objects/image.h"
#include "objects/symbol_table.h"
#include "recording/probes/probe_name.h"

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

namespace pe::objects {
namespace {

constexpr std::string_view kNoteName("stapsdt\0", 8);
constexpr std::uint32_t kNoteType = 3;
constexpr std::uint64_t kMaxNotesBytes = std::uint64_t{64} << 20;

std::optional<std::uint64_t> take_address(ByteReader& reader, bool is_64_bit) {
  if (is_64_bit)
    return reader.take<std::uint64_t>();
  const auto address = reader.take<std::uint32_t>();
  return address ? std::optional<std::uint64_t>(*address) : std::nullopt;
}

std::optional<StaticProbe> parse_probe(Bytes descriptor, bool is_64_bit,
                                       std::optional<std::uint64_t> base_svma) {
  ByteReader reader(descriptor);
  const auto place = take_address(reader, is_64_bit);
  const auto base = take_address(reader, is_64_bit);
  const auto semaphore = take_address(reader, is_64_bit);
  const auto provider = reader.take_string();
  const auto name = reader.take_string();
  const auto arguments = reader.take_string();
  if (!semaphore || !provider || !name || !arguments || name->empty())
    return std::nullopt;
  const std::uint64_t moved = base_svma ? *base_svma - *base : 0;  // may wrap around
  return StaticProbe{.provider = std::string(*provider),
                     .name = std::string(*name),
                     .svma = *place + moved,
                     .semaphore_svma = *semaphore == 0 ? 0 : *semaphore + moved,
                     .arguments = std::string(*arguments)};
}

}  // namespace

std::vector<StaticProbe> parse_static_probes(Bytes notes, bool is_64_bit,
                                             std::optional<std::uint64_t> base_svma) {
  std::vector<StaticProbe> probes;
  for_each_note(notes, sizeof(std::uint32_t), [&](const Note& note) {
    if (note.type != kNoteType || note.name.size() != kNoteName.size() ||
        std::memcmp(note.name.data(), kNoteName.data(), kNoteName.size()) != 0)
      return true;
    auto probe = parse_probe(note.descriptor, is_64_bit, base_svma);
    if (probe)
      probes.push_back(std::move(*probe));
    return probe.has_value();
  });
  return probes;
}

std::vector<StaticProbe> read_static_probes(const Image& image) {
  const Section* section = image.section(".note.stapsdt");
  const auto notes = section == nullptr ? std::nullopt : image.read(*section, kMaxNotesBytes);
  if (!notes)
    return {};
  const Section* base = image.section(".stapsdt.base");
  return parse_static_probes(*notes, image.is_64_bit(),
                             base == nullptr ? std::nullopt : std::optional(base->svma));
}

std::optional<std::uint64_t> semaphore_offset(const Image& image, const StaticProbe& probe) {
  using Semaphore = std::uint16_t;
  const std::uint64_t svma = probe.semaphore_svma;
  if (svma == 0)
    return 0;
  const Section* section = image.section(".probes");
  if (section == nullptr || !section->covers(svma) || svma % sizeof(Semaphore) != 0)
    return std::nullopt;
  for (const Segment& segment : image.segments()) {
    if (svma < segment.svma || svma - segment.svma >= segment.file_bytes)
      continue;
    const std::uint64_t offset = segment.file_offset + (svma - segment.svma);
    Semaphore value = 1;
    if (segment.writable && !segment.executable &&
        image.read_at(offset, std::as_writable_bytes(std::span(&value, 1))) && value == 0)
      return offset;
    break;
  }
  return std::nullopt;
}

}  // namespace pe::objects
