// SPDX-License-Identifier: MIT
#include "objects/library.h"

#include <elf.h>

namespace pe::objects {
namespace {

struct DynamicFacts {
  bool has_soname = false;
  bool is_pie = false;
};

template <typename Dyn>
DynamicFacts read_dynamic(Bytes bytes) {
  DynamicFacts facts;
  ByteReader reader(bytes);
  while (const auto entry = reader.take<Dyn>()) {
    if (entry->d_tag == DT_NULL)
      break;
    facts.has_soname = facts.has_soname || entry->d_tag == DT_SONAME;
    facts.is_pie =
        facts.is_pie || (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_PIE) != 0);
  }
  return facts;
}

}  // namespace

bool is_shared_library(const Image& image) {
  if (image.type() != ET_DYN)
    return false;
  DynamicFacts facts;
  if (const auto dynamic = image.section_bytes(".dynamic"))
    facts = image.is_64_bit() ? read_dynamic<Elf64_Dyn>(dynamic->bytes)
                              : read_dynamic<Elf32_Dyn>(dynamic->bytes);
  if (facts.is_pie)
    return false;
  return facts.has_soname || image.section(".interp") == nullptr;
}

}  // namespace pe::objects
