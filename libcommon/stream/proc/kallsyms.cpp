// SPDX-License-Identifier: MIT
#include "stream/proc/kallsyms.h"

#include <algorithm>
#include <limits>

#include "base/characters.h"
#include "base/io/regular_file.h"
#include "base/parse_number.h"

namespace pe::stream {
namespace {

constexpr std::size_t kMaxFileBytes = 256U << 20;
constexpr std::size_t kMaxSymbols = 4U << 20;
constexpr std::size_t kMaxModules = 16 * 1024;
constexpr std::size_t kMaxKernelNameBytes = 1024;  // KSYM_NAME_LEN is 512
constexpr std::uint64_t kPageBytes = 4096;

bool is_text(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

Binding binding_of(char type) {
  if (type == 'w' || type == 'W')
    return Binding::kWeak;
  return type == 'T' ? Binding::kGlobal : Binding::kLocal;
}

std::variant<std::string, KallsymsFailure> read_file(const std::string& path) {
  const auto opened = open_regular(path);
  if (const auto* failure = std::get_if<FileFailure>(&opened)) {
    if (*failure == FileFailure::kMissing)
      return KallsymsFailure::kMissing;
    return *failure == FileFailure::kPermission ? KallsymsFailure::kPermission
                                                : KallsymsFailure::kUnreadable;
  }
  // The size of a file in /proc is 0, and each read returns one page.
  const Fd& fd = std::get<RegularFile>(opened).fd;
  std::string text(1U << 20, '\0');
  for (std::size_t size = 0;;) {
    const auto into = std::as_writable_bytes(std::span(text).subspan(size));
    const std::size_t n = read_at(fd, size, into);
    size += n;
    if (n < into.size()) {
      text.resize(size);
      return text;
    }
    if (size >= kMaxFileBytes)
      return KallsymsFailure::kTooLarge;
    text.resize(2 * size);
  }
}

}  // namespace

struct Kallsyms::Line {
  std::uint64_t address;
  char type;
  std::string_view name, module;

  static std::optional<Line> parse(std::string_view text) {
    const auto address_text = take_until(text, ' ');
    const auto type = take_until(text, ' ');
    const auto address = parse_number<std::uint64_t>(address_text.value_or(""), 16);
    if (!address || !type || type->size() != 1)
      return std::nullopt;
    Line line{*address, type->front(), text, ""};
    if (const auto name = take_until(text, '\t')) {
      line.name = *name;
      if (text.size() < 3 || text.front() != '[' || text.back() != ']')
        return std::nullopt;
      line.module = text.substr(1, text.size() - 2);
    }
    if (line.name.empty() || line.name.size() > kMaxKernelNameBytes ||
        line.module.size() > kMaxKernelNameBytes || line.name.find('\0') != std::string_view::npos)
      return std::nullopt;
    return line;
  }
};

std::variant<Kallsyms, KallsymsFailure> Kallsyms::load(const std::string& path) {
  const auto text = read_file(path);
  if (const auto* failure = std::get_if<KallsymsFailure>(&text))
    return *failure;
  return parse(std::get<std::string>(text));
}

std::variant<Kallsyms, KallsymsFailure> Kallsyms::parse(std::string_view text) {
  Kallsyms symbols;
  symbols.names_.reserve(text.size() / 2);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    symbols.add_line(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  if (symbols.entries_.empty())
    return KallsymsFailure::kNoSymbols;
  if (!symbols.has_address_)
    return KallsymsFailure::kRestricted;
  symbols.keep_one_per_address();
  return symbols;
}

void Kallsyms::add_line(std::string_view line) {
  const auto parsed = Line::parse(line);
  if (!parsed) {
    ++skipped_lines_;
    return;
  }
  if (parsed->module.empty()) {
    if (parsed->name == "_text" || (parsed->name == "_stext" && !text_start_))
      text_start_ = parsed->address;
    if (parsed->name == "_etext")
      text_end_ = parsed->address;
  }
  if (is_text(parsed->type))
    add_symbol(*parsed);
}

void Kallsyms::add_symbol(const Line& line) {
  const auto module = module_index(line.module);
  if (!module || entries_.size() >= kMaxSymbols) {
    ++skipped_lines_;
    return;
  }
  const bool is_end = line.module.empty() && (line.name == "_etext" || line.name == "_einittext");
  has_address_ = has_address_ || line.address != 0;
  entries_.push_back({line.address, static_cast<std::uint32_t>(names_.size()), *module,
                      binding_of(line.type), is_end});
  names_.insert(names_.end(), line.name.begin(), line.name.end());
  names_.push_back('\0');
}

/// Returns the index of a module, which may be new.  The lines of one module are adjacent.
std::optional<std::uint16_t> Kallsyms::module_index(std::string_view name) {
  if (name.empty())
    return std::uint16_t{0};
  if (modules_.back() == name && modules_.size() > 1)
    return static_cast<std::uint16_t>(modules_.size() - 1);
  const auto known = module_indices_.find(name);
  if (known != module_indices_.end())
    return known->second;
  if (modules_.size() >= kMaxModules)
    return std::nullopt;
  const auto index = static_cast<std::uint16_t>(modules_.size());
  modules_.emplace_back(name);
  module_indices_.emplace(name, index);
  return index;
}

std::string_view Kallsyms::name_of(const Entry& entry) const noexcept {
  return names_.data() + entry.name;
}

bool Kallsyms::is_better(const Entry& a, const Entry& b) const {
  if (a.is_end != b.is_end)
    return b.is_end;
  return is_better_alias({false, a.binding, name_of(a)}, {false, b.binding, name_of(b)});
}

void Kallsyms::keep_one_per_address() {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (kept > 0 && entries_[kept - 1].start == entry.start) {
      if (is_better(entry, entries_[kept - 1]))
        entries_[kept - 1] = entry;
    } else {
      entries_[kept++] = entry;
    }
  }
  entries_.resize(kept);
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
  module_indices_.clear();
}

std::optional<KernelSymbol> Kallsyms::find(std::uint64_t address) const noexcept {
  const auto next =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t at, const Entry& entry) { return at < entry.start; });
  if (next == entries_.begin() || std::prev(next)->is_end)
    return std::nullopt;
  const Entry& entry = *std::prev(next);
  const bool is_last = next == entries_.end() || next->module != entry.module;
  // Like perf, assume that it ends with the page after the one that it starts in.
  if (is_last && address / kPageBytes - entry.start / kPageBytes > 1)
    return std::nullopt;
  if (text_end_ && entry.module == 0 && entry.start < *text_end_ && address >= *text_end_)
    return std::nullopt;
  return KernelSymbol{name_of(entry), entry.start, modules_[entry.module]};
}

}  // namespace pe::stream
