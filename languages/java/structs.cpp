// SPDX-License-Identifier: MIT
#include "languages/java/structs.h"

#include <algorithm>
#include <span>

#include "objects/image.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostEntries = 20'000, kMostTextBytes = 200;
constexpr std::uint64_t kMostStride = 1024;

/// In the order of HotspotVariable.
constexpr std::array<std::string_view, kVmVariables> kNames = {
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMIntConstantEntryArrayStride",
};

/// Returns the text to which the pointer at `avma` leads; nullopt at the end of a table.
std::optional<std::string> text_of(Memory& memory, std::uint64_t avma) {
  const auto text = memory.pointer(avma);
  return text && *text != 0 ? read_c_text(memory, *text, kMostTextBytes) : std::nullopt;
}

}  // namespace

std::optional<std::string> read_c_text(Memory& memory, std::uint64_t avma, std::size_t most) {
  constexpr std::uint64_t kPageBytes = 4096;
  std::string text;
  while (text.size() < most) {
    const std::uint64_t at = avma + text.size();
    std::array<char, 32> piece;
    const auto bytes = std::span(piece).first(
        std::min<std::uint64_t>({piece.size(), most - text.size(), kPageBytes - at % kPageBytes}));
    if (!memory.read(at, std::as_writable_bytes(bytes)))
      return std::nullopt;
    const auto end = std::ranges::find(bytes, '\0');
    text.append(bytes.begin(), end);
    if (end != bytes.end())
      break;
  }
  return text;
}

std::optional<HotspotBinary> find_hotspot(const objects::Image& image) {
  if (!image.is_x86_64())
    return std::nullopt;
  HotspotBinary found;
  objects::for_each_symbol(
      image, [&found](std::string_view name, std::uint64_t svma, std::uint64_t /*bytes*/) {
        if (name == "_ZN12StubRoutines19_cont_returnBarrierE")
          found.return_barrier = svma;
        if (name == "_ZN17ContinuationEntry10_return_pcE")
          found.entry_return = svma;
        if (!name.starts_with(kNames.front().substr(0, std::string_view("gHotSpotVM").size())))
          return;
        const auto* const known = std::ranges::find(kNames, name);
        if (known != kNames.end())
          found.variables[static_cast<std::size_t>(known - kNames.begin())] = svma;
      });
  return std::ranges::count(found.variables, 0U) == 0 ? std::optional(found) : std::nullopt;
}

/// The variables are pointers to tables, offsets and sizes.
HotspotStructs::HotspotStructs(Memory& memory, const HotspotBinary& binary, std::uint64_t bias) {
  HotspotBinary of_process;
  for (std::size_t i = 0; i < kVmVariables; ++i)
    of_process.variables[i] = memory.pointer(binary.variables[i] + bias).value_or(0);
  const auto& values = of_process.variables;
  for (const HotspotVariable stride : {kVmFieldStride, kVmTypeStride, kVmConstantStride})
    if (values[stride] == 0 || values[stride] > kMostStride)
      return;
  read_fields(memory, of_process);
  read_types(memory, of_process);
  read_constants(memory, of_process);
}

void HotspotStructs::read_fields(Memory& memory, const HotspotBinary& of_process) {
  const auto& values = of_process.variables;
  std::uint64_t at = values[kVmFields];
  for (std::size_t i = 0; i < kMostEntries; ++i, at += values[kVmFieldStride]) {
    auto name = text_of(memory, at + values[kVmFieldType]);
    const auto field = text_of(memory, at + values[kVmFieldName]);
    const auto is_static = memory.value<std::int32_t>(at + values[kVmFieldIsStatic]);
    const auto offset = memory.value<std::uint64_t>(at + values[kVmFieldOffset]);
    const auto address = memory.value<std::uint64_t>(at + values[kVmFieldAddress]);
    if (!name || !field || !is_static || !offset || !address)
      return;
    *name += "::";
    *name += *field;
    if (*is_static != 0)
      addresses_.emplace(std::move(*name), *address);
    else
      offsets_.emplace(std::move(*name), *offset);
  }
}

void HotspotStructs::read_types(Memory& memory, const HotspotBinary& of_process) {
  const auto& values = of_process.variables;
  std::uint64_t at = values[kVmTypes];
  for (std::size_t i = 0; i < kMostEntries; ++i, at += values[kVmTypeStride]) {
    const auto name = text_of(memory, at + values[kVmTypeName]);
    const auto size = memory.value<std::uint64_t>(at + values[kVmTypeSize]);
    if (!name || !size)
      return;
    sizes_.emplace(*name, *size);
  }
}

void HotspotStructs::read_constants(Memory& memory, const HotspotBinary& of_process) {
  const auto& values = of_process.variables;
  std::uint64_t at = values[kVmConstants];
  for (std::size_t i = 0; i < kMostEntries; ++i, at += values[kVmConstantStride]) {
    const auto name = text_of(memory, at + values[kVmConstantName]);
    const auto value = memory.value<std::int32_t>(at + values[kVmConstantValue]);
    if (!name || !value)
      return;
    constants_.emplace(*name, static_cast<std::uint64_t>(*value));
  }
}

std::optional<std::uint64_t> HotspotStructs::find(const Numbers& numbers, std::string_view name) {
  const auto found = numbers.find(std::string(name));
  return found != numbers.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace pe::languages
