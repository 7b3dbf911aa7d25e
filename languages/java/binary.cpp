// SPDX-License-Identifier: MIT
#include "languages/java/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>

#include "languages/java/layout.h"
#include "objects/image.h"

namespace pe::languages {
namespace {

constexpr std::int32_t kOldest = 17, kNewest = 27, kFirstWithExcess = 20;

using Member = std::uint32_t HotspotLayout::*;

struct Wanted {
  Member member;
  const char* field;
  const char* newer_field = nullptr;  ///< its name in later versions; null: the same
};

constexpr std::initializer_list<Wanted> kOfAll = {
    {&HotspotLayout::array_length, "GrowableArrayBase::_len"},
    {&HotspotLayout::array_data, "GrowableArray<int>::_data"},
    {&HotspotLayout::heap_memory, "CodeHeap::_memory"},
    {&HotspotLayout::heap_segments, "CodeHeap::_segmap"},
    {&HotspotLayout::heap_segment_shift, "CodeHeap::_log2_segment_size"},
    {&HotspotLayout::space_low, "VirtualSpace::_low"},
    {&HotspotLayout::space_high, "VirtualSpace::_high_boundary"},
    {&HotspotLayout::block_used, "HeapBlock::Header::_used"},
    {&HotspotLayout::queue_buffer, "StubQueue::_stub_buffer"},
    {&HotspotLayout::queue_bytes, "StubQueue::_buffer_limit"},
    {&HotspotLayout::blob_name, "CodeBlob::_name"},
    {&HotspotLayout::blob_size, "CodeBlob::_size"},
    {&HotspotLayout::blob_frame_words, "CodeBlob::_frame_size"},
    {&HotspotLayout::blob_frame_complete, "CodeBlob::_frame_complete_offset"},
    {&HotspotLayout::code_compile_id, "nmethod::_compile_id"},
    {&HotspotLayout::code_pc_descs, "nmethod::_scopes_pcs_offset"},
    {&HotspotLayout::code_original_pc, "nmethod::_orig_pc_offset"},
    {&HotspotLayout::method_const, "Method::_constMethod"},
    {&HotspotLayout::const_pool, "ConstMethod::_constants"},
    {&HotspotLayout::const_flags, "ConstMethod::_flags", "ConstMethod::_flags._flags"},
    {&HotspotLayout::const_words, "ConstMethod::_constMethod_size"},
    {&HotspotLayout::const_code_size, "ConstMethod::_code_size"},
    {&HotspotLayout::const_name, "ConstMethod::_name_index"},
    {&HotspotLayout::pool_holder, "ConstantPool::_pool_holder"},
    {&HotspotLayout::pool_length, "ConstantPool::_length"},
    {&HotspotLayout::pool_file, "ConstantPool::_source_file_name_index"},
    {&HotspotLayout::klass_name, "Klass::_name"},
    {&HotspotLayout::symbol_length, "Symbol::_length"},
    {&HotspotLayout::symbol_body, "Symbol::_body"},
};
constexpr std::initializer_list<Wanted> kWithAddresses = {
    {&HotspotLayout::blob_code_start, "CodeBlob::_code_begin"},
    {&HotspotLayout::blob_code_end, "CodeBlob::_code_end"},
    {&HotspotLayout::code_method, "CompiledMethod::_method"},
    {&HotspotLayout::code_scopes, "CompiledMethod::_scopes_data_begin"},
    {&HotspotLayout::code_deopt_handler, "CompiledMethod::_deopt_handler_begin"},
    {&HotspotLayout::code_metadata, "nmethod::_metadata_offset"},
    {&HotspotLayout::code_pc_descs_end, "nmethod::_dependencies_offset"},
};
constexpr std::initializer_list<Wanted> kWithOffsets = {
    {&HotspotLayout::blob_code_start, "CodeBlob::_code_offset"},
    {&HotspotLayout::blob_code_end, "CodeBlob::_data_offset"},
    {&HotspotLayout::blob_mutable_data, "CodeBlob::_mutable_data"},
    {&HotspotLayout::blob_relocation_size, "CodeBlob::_relocation_size"},
    {&HotspotLayout::code_method, "nmethod::_method"},
    {&HotspotLayout::code_scopes, "nmethod::_scopes_data_offset"},
    {&HotspotLayout::code_deopt_handler, "nmethod::_deopt_handler_offset",
     "nmethod::_deopt_handler_entry_offset"},
    {&HotspotLayout::code_immutable, "nmethod::_immutable_data"},
    {&HotspotLayout::code_immutable_size, "nmethod::_immutable_data_size"},
};
constexpr std::initializer_list<Wanted> kSizes = {
    {&HotspotLayout::block_bytes, "HeapBlock"},
    {&HotspotLayout::const_bytes, "ConstMethod"},
    {&HotspotLayout::pool_bytes, "ConstantPool"},
};

/// Stores a number; false if it is missing, or larger than that of any real JVM.
bool store(HotspotLayout& layout, const Wanted& wanted, std::optional<std::uint64_t> number) {
  if (!number || *number > kMostFieldOffset - sizeof(std::uint64_t))
    return false;
  layout.*wanted.member = static_cast<std::uint32_t>(*number);
  return true;
}

bool store_all(HotspotLayout& layout, const HotspotStructs& structs) {
  bool has_all = true;
  const auto take = [&](std::initializer_list<Wanted> fields) {
    for (const Wanted& wanted : fields) {
      auto offset = structs.offset(wanted.field);
      if (!offset && wanted.newer_field != nullptr)
        offset = structs.offset(wanted.newer_field);
      has_all = store(layout, wanted, offset) && has_all;
    }
  };
  layout.has_offsets = !structs.offset("CodeBlob::_code_begin");
  take(kOfAll);
  take(layout.has_offsets ? kWithOffsets : kWithAddresses);
  for (const Wanted& wanted : kSizes)
    has_all = store(layout, wanted, structs.size(wanted.field)) && has_all;
  return has_all;
}

bool store_places(HotspotLayout& layout, const HotspotStructs& structs) {
  const auto heaps = structs.address("CodeCache::_heaps");
  const auto interpreter = structs.address("AbstractInterpreter::_code");
  const auto stub = structs.address("StubRoutines::_call_stub_return_address");
  const auto old_bit = structs.constant("ConstMethod::_has_linenumber_table");
  const auto lines_bit =
      old_bit ? old_bit : structs.constant("ConstMethodFlags::_misc_has_linenumber_table");
  const auto sender_sp = structs.constant("frame::interpreter_frame_sender_sp_offset");
  if (!heaps || !interpreter || !stub || !lines_bit || sender_sp != layout.frame_sender_sp)
    return false;
  layout.heaps = *heaps;
  layout.interpreter = *interpreter;
  layout.call_stub_return = *stub;
  layout.has_lines_bit = static_cast<std::uint32_t>(*lines_bit);
  return true;
}

}  // namespace

std::variant<HotspotLayout, std::string> hotspot_layout(Memory& memory,
                                                        const HotspotStructs& structs) {
  const auto version_at = structs.address("Abstract_VM_Version::_vm_major_version");
  if (!version_at)
    return "a Java before 9";
  const auto version = memory.value<std::int32_t>(*version_at);
  if (!version)
    return "";
  if (*version < kOldest || *version > kNewest)
    return fmt::format("Java {}", *version);
  HotspotLayout layout{};
  layout.version = static_cast<std::uint32_t>(*version);
  layout.compressed_excess = *version >= kFirstWithExcess ? 1 : 0;
  if (!store_all(layout, structs) || !store_places(layout, structs))
    return fmt::format("Java {} without its layout", *version);
  return layout;
}

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
