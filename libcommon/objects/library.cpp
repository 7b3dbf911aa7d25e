// SPDX-License-Identifier: MIT
#include "objects/library.h"

#include <elf.h>

#include <optional>
#include <string_view>

namespace pe::objects {
namespace {

struct DynamicFacts {
  std::optional<std::uint64_t> soname;  ///< offset in .dynstr
  bool is_pie = false;
};

template <typename Dyn>
DynamicFacts read_dynamic(Bytes bytes) {
  DynamicFacts facts;
  ByteReader reader(bytes);
  while (const auto entry = reader.take<Dyn>()) {
    if (entry->d_tag == DT_NULL)
      break;
    if (entry->d_tag == DT_SONAME)
      facts.soname = entry->d_un.d_val;
    facts.is_pie =
        facts.is_pie || (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_PIE) != 0);
  }
  return facts;
}

DynamicFacts read_dynamic(const Image& image) {
  const auto dynamic = image.section_bytes(".dynamic");
  if (!dynamic)
    return {};
  return image.is_64_bit() ? read_dynamic<Elf64_Dyn>(dynamic->bytes)
                           : read_dynamic<Elf32_Dyn>(dynamic->bytes);
}

}  // namespace

bool is_shared_library(const Image& image) {
  if (image.type() != ET_DYN)
    return false;
  const DynamicFacts facts = read_dynamic(image);
  if (facts.is_pie)
    return false;
  return facts.soname || image.section(".interp") == nullptr;
}

std::string soname_of(const Image& image) {
  const auto at = read_dynamic(image).soname;
  const auto names = at ? image.section_bytes(".dynstr") : std::nullopt;
  if (!names || *at >= names->bytes.size())
    return {};
  const Bytes rest = Bytes(names->bytes).subspan(*at);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  return std::string(text.substr(0, text.find('\0')));
}

}  // namespace pe::objects
