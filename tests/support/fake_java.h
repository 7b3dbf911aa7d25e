// The memory of a process that runs a HotSpot JVM, made by hand.  Its structures have other places
// than those of any real one: only its tables describe them.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "languages/java/binary.h"
#include "languages/java/process.h"

namespace pe::testing {

class FakeJava {
 public:
  static constexpr std::uint64_t kBase = 0x10000, kCode = kBase + 0x8000, kCodeBytes = 0x4000;
  static constexpr std::uint64_t kNowhere = 0x4000'0000;  ///< is unreadable
  static constexpr std::uint64_t kWord = 8, kObjectBytes = 256, kSegmentBytes = 128;

  /// `missing` is a field that the tables do not describe.
  explicit FakeJava(std::int32_t version = 17, std::string_view missing = "")
      : bytes_(kCode + kCodeBytes - kBase) {
    version_ = version;
    variables_ = room(languages::kVmVariables * kWord);
    publish_fields(missing);
    publish_names({"HeapBlock", "ConstMethod", "ConstantPool"}, languages::kVmTypes,
                  [](std::string_view name) { return name == "HeapBlock" ? 16U : kObjectBytes; });
    publish_names(
        {"ConstMethod::_has_linenumber_table", "frame::interpreter_frame_sender_sp_offset"},
        languages::kVmConstants, [](std::string_view name) {
          return name.starts_with("frame") ? ~std::uint64_t{0} : std::uint64_t{1};
        });
    make_heap();
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t read(std::uint64_t avma, std::span<std::byte> into) const {
    return read(bytes_, avma, into);
  }
  static std::size_t read(std::span<const std::byte> memory, std::uint64_t avma,
                          std::span<std::byte> into) {
    if (avma < kBase || avma - kBase >= memory.size())
      return 0;
    std::ranges::fill(into, std::byte{0});  // rounded up to pages, as memory is
    const std::size_t at = avma - kBase;
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(at),
                std::min(into.size(), memory.size() - at), into.begin());
    return into.size();
  }
  /// The places of the variables, from kBase; `first` is the avma of the first one.
  static languages::HotspotBinary binary(std::uint64_t first) {
    languages::HotspotBinary binary;
    for (std::size_t i = 0; i < languages::kVmVariables; ++i)
      binary.variables[i] = first - kBase + i * kWord;
    return binary;
  }
  [[nodiscard]] std::uint64_t variables() const noexcept { return variables_; }
  /// Opens the process.  The FakeJava must outlive it.
  [[nodiscard]] std::variant<languages::HotspotProcess, std::string> open() const {
    return languages::HotspotProcess::open(
        [this](std::uint64_t avma, std::span<std::byte> into) { return read(avma, into); },
        binary(variables_), kBase);
  }

  template <typename T>
  void put(std::uint64_t avma, T value) {
    std::memcpy(bytes_.data() + (avma - kBase), &value, sizeof value);
  }
  void put_text(std::uint64_t avma, std::string_view text) {
    // An empty view may have no data, which memcpy() refuses.
    std::ranges::copy(std::as_bytes(std::span(text)),
                      bytes_.begin() + static_cast<std::ptrdiff_t>(avma - kBase));
  }
  /// Sets a field of an object at `avma`.
  template <typename T>
  void set(std::uint64_t avma, std::string_view field, T value) {
    put(avma + offsets_.at(std::string(field)), value);
  }
  std::uint64_t room(std::size_t size) {
    const std::uint64_t avma = kBase + bytes_.size();
    bytes_.resize((bytes_.size() + size + 15) / 16 * 16);
    return avma;
  }
  std::uint64_t text(std::string_view characters) {
    const std::uint64_t avma = room(characters.size() + 1);
    put_text(avma, characters);
    return avma;
  }
  std::uint64_t symbol(std::string_view characters) {
    const std::uint64_t avma = room(kObjectBytes + characters.size());
    set(avma, "Symbol::_length", static_cast<std::uint16_t>(characters.size()));
    put_text(avma + offsets_.at("Symbol::_body"), characters);
    return avma;
  }

  /// A method with 20 bytes of bytecode.  `lines` is its compressed table of lines; empty: none.
  std::uint64_t method(std::string_view klass, std::string_view name, std::string_view file,
                       std::string_view lines) {
    constexpr std::uint16_t kBytecodes = 20;
    const std::uint64_t holder = room(kObjectBytes);
    set(holder, "Klass::_name", symbol(klass));
    const std::uint64_t pool = room(kObjectBytes + 3 * kWord);
    set(pool, "ConstantPool::_pool_holder", holder);
    set(pool, "ConstantPool::_length", 3);
    set(pool, "ConstantPool::_source_file_name_index", std::uint16_t{2});
    put(pool + kObjectBytes + kWord, symbol(name));
    put(pool + kObjectBytes + 2 * kWord, symbol(file));
    const std::uint64_t bytes = kObjectBytes + kBytecodes + lines.size() + 2;
    const std::uint64_t constant = room(bytes + kWord);
    set(constant, "ConstMethod::_constants", pool);
    set(constant, "ConstMethod::_constMethod_size", static_cast<std::uint32_t>(bytes / kWord + 1));
    set(constant, "ConstMethod::_flags", static_cast<std::uint16_t>(lines.empty() ? 0 : 1));
    set(constant, "ConstMethod::_code_size", kBytecodes);
    set(constant, "ConstMethod::_name_index", std::uint16_t{1});
    put_text(constant + kObjectBytes + kBytecodes, lines);
    const std::uint64_t avma = room(kObjectBytes);
    set(avma, "Method::_constMethod", constant);
    return avma;
  }
  /// The avma of a bytecode of the method.
  [[nodiscard]] std::uint64_t bytecode(std::uint64_t method, std::uint32_t offset) const {
    std::uint64_t constant = 0;
    std::memcpy(&constant, bytes_.data() + (method + offsets_.at("Method::_constMethod") - kBase),
                sizeof constant);
    return constant + kObjectBytes + offset;
  }

  /// Adds a block of code, in segments from `segment` on, and returns its blob.  Its code starts
  /// kCodeStart bytes after the blob, and has 256 bytes.
  static constexpr std::uint64_t kCodeStart = kObjectBytes * 2, kBlobBytes = kCodeStart + 256;
  std::uint64_t blob(std::uint32_t segment, std::uint32_t segments, std::string_view name,
                     std::int32_t frame_words) {
    const std::uint64_t block = kCode + segment * kSegmentBytes;
    for (std::uint32_t i = 0; i < segments; ++i)
      put(segments_ + segment + i, static_cast<std::uint8_t>(i));
    set(block, "HeapBlock::Header::_used", std::uint8_t{1});
    const std::uint64_t avma = block + 16;
    set(avma, "CodeBlob::_name", text(name));
    set(avma, "CodeBlob::_size", static_cast<std::uint32_t>(kBlobBytes));
    set(avma, "CodeBlob::_frame_size", frame_words);
    set(avma, "CodeBlob::_frame_complete_offset", std::int32_t{8});
    set(avma, "CodeBlob::_code_begin", avma + kCodeStart);
    set(avma, "CodeBlob::_code_end", avma + kBlobBytes);
    return avma;
  }
  /// A block of a compiled method.  At 32 bytes of its code, the scopes have the bytes `scopes`, of
  /// which the innermost head is at `head`; `metadata` are methods.
  std::uint64_t compiled(std::uint32_t segment, std::uint64_t method, std::string_view scopes,
                         std::uint32_t head, const std::vector<std::uint64_t>& metadata) {
    const std::uint64_t avma = blob(segment, 8, "nmethod", 6);
    const std::uint64_t data = room(256);
    put_text(data, scopes);
    const std::uint64_t descs = data + 64;
    put(descs, std::int32_t{-1});
    put(descs + 16, std::int32_t{32});
    put(descs + 20, head);
    for (std::size_t i = 0; i < metadata.size(); ++i)
      put(data + 128 + i * kWord, metadata[i]);
    set(avma, "CompiledMethod::_method", method);
    set(avma, "CompiledMethod::_scopes_data_begin", data);
    set(avma, "nmethod::_scopes_pcs_offset", static_cast<std::uint32_t>(descs - avma));
    set(avma, "nmethod::_dependencies_offset", static_cast<std::uint32_t>(descs + 32 - avma));
    set(avma, "nmethod::_metadata_offset", static_cast<std::uint32_t>(data + 128 - avma));
    set(avma, "nmethod::_compile_id", next_id_++);
    return avma;
  }
  /// Frees a block, which keeps its bytes.
  /// Whether the JVM has made its interpreter yet; it has at first.
  void make_interpreter(bool is_made) { put(statics_ + 2 * kWord, is_made ? queue_ : 0); }
  void free(std::uint64_t blob) { set(blob - 16, "HeapBlock::Header::_used", std::uint8_t{0}); }

 private:
  static constexpr std::string_view kFields[] = {"GrowableArrayBase::_len",
                                                 "GrowableArray<int>::_data",
                                                 "CodeHeap::_memory",
                                                 "CodeHeap::_segmap",
                                                 "CodeHeap::_log2_segment_size",
                                                 "VirtualSpace::_low",
                                                 "VirtualSpace::_high_boundary",
                                                 "HeapBlock::Header::_used",
                                                 "StubQueue::_stub_buffer",
                                                 "StubQueue::_buffer_limit",
                                                 "CodeBlob::_name",
                                                 "CodeBlob::_size",
                                                 "CodeBlob::_frame_size",
                                                 "CodeBlob::_frame_complete_offset",
                                                 "CodeBlob::_code_begin",
                                                 "CodeBlob::_code_end",
                                                 "CompiledMethod::_method",
                                                 "CompiledMethod::_scopes_data_begin",
                                                 "CompiledMethod::_deopt_handler_begin",
                                                 "nmethod::_metadata_offset",
                                                 "nmethod::_dependencies_offset",
                                                 "nmethod::_compile_id",
                                                 "nmethod::_scopes_pcs_offset",
                                                 "nmethod::_orig_pc_offset",
                                                 "Method::_constMethod",
                                                 "ConstMethod::_constants",
                                                 "ConstMethod::_constMethod_size",
                                                 "ConstMethod::_code_size",
                                                 "ConstMethod::_name_index",
                                                 "ConstMethod::_flags",
                                                 "ConstantPool::_pool_holder",
                                                 "ConstantPool::_length",
                                                 "ConstantPool::_source_file_name_index",
                                                 "Klass::_name",
                                                 "Symbol::_length",
                                                 "Symbol::_body"};
  static constexpr std::string_view kStatics[] = {"Abstract_VM_Version::_vm_major_version",
                                                  "CodeCache::_heaps", "AbstractInterpreter::_code",
                                                  "StubRoutines::_call_stub_return_address"};
  static constexpr std::uint64_t kEntryBytes = 48;

  void set_variable(std::size_t number, std::uint64_t value) {
    put(variables_ + number * kWord, value);
  }
  void publish_fields(std::string_view missing) {
    constexpr std::uint64_t kTypeAt = 0, kFieldAt = 8, kStaticAt = 16, kOffsetAt = 24,
                            kAddressAt = 32;
    const std::uint64_t table = room((std::size(kFields) + std::size(kStatics) + 1) * kEntryBytes);
    statics_ = room(std::size(kStatics) * kWord);
    std::uint64_t at = table;
    const auto add = [&](std::string_view name, std::uint64_t offset, std::uint64_t address) {
      if (name == missing)
        return;
      const auto colons = name.rfind("::");
      const auto type = text(name.substr(0, colons));
      const auto field = text(name.substr(colons + 2));
      put(at + kTypeAt, type);
      put(at + kFieldAt, field);
      put(at + kStaticAt, address != 0 ? 1 : 0);
      put(at + kOffsetAt, offset);
      put(at + kAddressAt, address);
      at += kEntryBytes;
    };
    std::uint64_t next = kWord;
    for (const std::string_view field : kFields) {
      const bool is_in_header = field == "HeapBlock::Header::_used";
      // A space within a heap has 32 bytes.
      const std::uint64_t offset = is_in_header ? 8 : next;
      next = field.starts_with("VirtualSpace") ? next : next % (kObjectBytes - 64) + 40;
      offsets_[std::string(field)] = field == "VirtualSpace::_low"             ? 0
                                     : field == "VirtualSpace::_high_boundary" ? 16
                                                                               : offset;
      add(field, offsets_.at(std::string(field)), 0);
    }
    for (std::size_t i = 0; i < std::size(kStatics); ++i)
      add(kStatics[i], 0, statics_ + i * kWord);
    using namespace languages;
    set_variable(kVmFields, table);
    set_variable(kVmFieldType, kTypeAt);
    set_variable(kVmFieldName, kFieldAt);
    set_variable(kVmFieldIsStatic, kStaticAt);
    set_variable(kVmFieldOffset, kOffsetAt);
    set_variable(kVmFieldAddress, kAddressAt);
    set_variable(kVmFieldStride, kEntryBytes);
  }
  /// A table of names and numbers; its variable is followed by the offsets of both and its stride.
  template <typename NumberOf>
  void publish_names(std::initializer_list<std::string_view> names, std::size_t variable,
                     NumberOf number_of) {
    const std::uint64_t table = room((names.size() + 1) * 16);
    std::uint64_t at = table;
    for (const std::string_view name : names) {
      const auto name_at = text(name);
      put(at, name_at);
      put(at + kWord, std::uint64_t{number_of(name)});
      at += 16;
    }
    set_variable(variable, table);
    set_variable(variable + 1, 0);
    set_variable(variable + 2, kWord);
    set_variable(variable + 3, 16);
  }
  void make_heap() {
    segments_ = room(kCodeBytes / kSegmentBytes);
    for (std::uint64_t i = 0; i < kCodeBytes / kSegmentBytes; ++i)
      put(segments_ + i, std::uint8_t{0xff});
    const std::uint64_t heap = room(kObjectBytes * 2);
    const std::uint64_t memory = heap + offsets_.at("CodeHeap::_memory");
    set(memory, "VirtualSpace::_low", kCode);
    set(memory, "VirtualSpace::_high_boundary", kCode + kCodeBytes);
    set(heap + offsets_.at("CodeHeap::_segmap"), "VirtualSpace::_low", segments_);
    set(heap, "CodeHeap::_log2_segment_size", 7);
    const std::uint64_t list = room(kObjectBytes);
    const std::uint64_t data = room(kWord);
    put(data, heap);
    set(list, "GrowableArrayBase::_len", 1);
    set(list, "GrowableArray<int>::_data", data);
    queue_ = room(kObjectBytes);
    set(queue_, "StubQueue::_stub_buffer", kCode + kCodeBytes - kSegmentBytes);
    set(queue_, "StubQueue::_buffer_limit", 64);
    put(statics_, version_);
    put(statics_ + kWord, list);
    make_interpreter(true);
  }

  std::vector<std::byte> bytes_;
  std::map<std::string, std::uint64_t> offsets_;  ///< by field
  std::int32_t version_;
  std::uint64_t variables_ = 0, statics_ = 0, segments_ = 0, queue_ = 0;
  std::uint32_t next_id_ = 1;
};

}  // namespace pe::testing
