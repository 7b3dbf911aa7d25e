// SPDX-License-Identifier: MIT
#include "recording/probes/source_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "names/dwarf/debug_image.h"
#include "names/dwarf/die.h"
#include "names/dwarf/inlines.h"

namespace pe::names {
namespace {

struct FreeLines {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

/// Returns the name after the last "::" that is not in brackets, without template arguments and
/// parameters.
std::string_view last_part(std::string_view name) {
  name = name.substr(0, name.find_first_of("(<"));
  const auto colon = name.rfind("::");
  return colon == name.npos ? name : name.substr(colon + 2);
}

bool is_abstract(Dwarf_Die& function) {
  const std::uint64_t how = number_of(function, DW_AT_inline);
  return how == DW_INL_inlined || how == DW_INL_declared_inlined;
}

}  // namespace

class SourcePlaces::Reader {
 public:
  Reader(DebugImage main, DebugImage alt) : main_(std::move(main)), alt_(std::move(alt)) {
    if (main_.get() != nullptr && alt_.get() != nullptr)
      dwarf_setalt(main_.get(), alt_.get());
  }

  [[nodiscard]] bool is_empty() const { return main_.get() == nullptr; }

  Line code_of(const std::string& file, std::uint64_t line) {
    Dwarf_Line** found = nullptr;
    std::size_t count = 0;
    if (is_empty() || line > std::numeric_limits<int>::max() ||
        dwarf_getsrc_file(main_.get(), file.c_str(), static_cast<int>(line), 0, &found, &count) !=
            0)
      return {};
    const std::unique_ptr<Dwarf_Line*, FreeLines> owner(found);
    Line code;
    // Files of the same name may have different next lines.
    for (std::size_t i = 0; i < count; ++i) {
      int number = 0;
      Dwarf_Addr svma = 0;
      if (dwarf_lineno(found[i], &number) != 0 || number <= 0 ||
          dwarf_lineaddr(found[i], &svma) != 0)
        continue;
      const auto at = static_cast<std::uint64_t>(number);
      if (code.line == 0 || at < code.line)
        code = {.line = at, .svmas = {}};
      if (at == code.line)
        code.svmas.push_back(svma);
    }
    std::sort(code.svmas.begin(), code.svmas.end());
    code.svmas.erase(std::unique(code.svmas.begin(), code.svmas.end()), code.svmas.end());
    return code;
  }

  std::optional<InlinedFunction> find_inlined(const std::string& name) {
    std::optional<InlinedFunction> found;
    Dwarf_Off at = 0;
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    while (!found && !is_empty() &&
           dwarf_nextcu(main_.get(), at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
           next > at && !effort_.is_spent()) {
      Dwarf_Die unit;
      const Dwarf_Off entry = at + header_bytes;
      at = next;
      if (dwarf_offdie(main_.get(), entry, &unit) != nullptr)
        names_.list_functions(unit, effort_, [&](Dwarf_Die& function) {
          if (!found && is_abstract(function) && is_named(function, name))
            found = place_of(function);
        });
    }
    return found;
  }

 private:
  bool is_named(Dwarf_Die& function, const std::string& name) {
    if (text_of(function, DW_AT_name) != last_part(name))
      return false;
    const std::string_view wanted = std::string_view(name).substr(0, name.find('('));
    return wanted == last_part(name) || names_.of(function, effort_) == wanted;
  }

  static InlinedFunction place_of(Dwarf_Die& function) {
    InlinedFunction place;
    if (const char* file = dwarf_decl_file(&function); file != nullptr)
      place.file = file;
    if (int line = 0; dwarf_decl_line(&function, &line) == 0 && line > 0)
      place.line = static_cast<std::uint64_t>(line);
    return place;
  }

  static constexpr std::uint64_t kMaxSteps = std::uint64_t{8} << 30;

  DwarfHandle main_, alt_;
  Effort effort_{kMaxSteps};
  FullNames names_;
};

SourcePlaces::SourcePlaces(const objects::Image& image, const std::string& path,
                           objects::DebugFinder& finder) {
  std::string holder_path = path;
  std::optional<objects::DebugFile> separate;
  if (!objects::has_debug_info(image)) {
    separate = finder.separate(image, path);
    if (!separate)
      return;
    holder_path = separate->path;
  }
  const objects::Image& holder = separate ? separate->image : image;
  DebugImage main = make_debug_image(holder, Inlines::kMaxDebugBytes);
  const std::uint64_t left =
      Inlines::kMaxDebugBytes - std::min<std::uint64_t>(Inlines::kMaxDebugBytes, main.bytes.size());
  DebugImage alt;
  if (const auto alternate = finder.alternate(holder, holder_path))
    alt = make_debug_image(alternate->image, left);
  reader_ = std::make_unique<Reader>(std::move(main), std::move(alt));
}

SourcePlaces::~SourcePlaces() = default;

bool SourcePlaces::is_empty() const noexcept { return !reader_ || reader_->is_empty(); }

SourcePlaces::Line SourcePlaces::code_of(const std::string& file, std::uint64_t line) const {
  return reader_ ? reader_->code_of(file, line) : Line{};
}

std::optional<InlinedFunction> SourcePlaces::find_inlined(const std::string& name) const {
  return reader_ ? reader_->find_inlined(name) : std::nullopt;
}

}  // namespace pe::names

namespace pe::unwind {

std::vector<std::uint64_t> read_landing_pads(AddressedReader table, std::uint64_t function) {
  std::vector<std::uint64_t> pads;
  const auto base_encoding = table.take<std::uint8_t>();
  if (base_encoding && *base_encoding != DW_EH_PE_omit) {
    const auto base = read_pointer(table, *base_encoding, 0);
    if (!base)
      return pads;
    function = *base;
  }
  const auto type_encoding = table.take<std::uint8_t>();
  if (type_encoding && *type_encoding != DW_EH_PE_omit && !read_uleb128(table))
    return pads;
  const auto encoding = table.take<std::uint8_t>();
  const auto bytes = encoding ? read_uleb128(table) : std::nullopt;
  auto entries = bytes ? table.take_part(*bytes) : std::nullopt;
  while (entries && !entries->left().empty()) {
    const auto number = [&] { return read_pointer(*entries, *encoding & kPointerFormatMask, 0); };
    const auto start = number(), length = number(), pad = number();
    const auto action = read_uleb128(*entries);
    if (!start || !length || !pad || !action)
      break;
    if (*pad != 0)
      pads.push_back(function + *pad);
  }
  return pads;
}

}  // namespace pe::unwind
