// SPDX-License-Identifier: MIT
#include "languages/java/process.h"

#include <algorithm>
#include <iterator>

#include "languages/java/code.h"

namespace pe::languages {
namespace {

using stream::ScriptKind;

constexpr std::size_t kMostBlobs = 65'536, kMostMethods = 262'144, kMostPlaces = 262'144;
/// Effort in a period, of which a unit reads a page or two.
constexpr std::size_t kMostEffort = 20'000;
constexpr std::size_t kSearchEffort = 4, kMethodEffort = 4, kCodeEffort = 4, kPlacesEffort = 16;

/// Returns what a method takes in memory; 0 if there is none.
std::size_t bytes_of(const std::optional<JavaMethod>& method) {
  constexpr std::size_t kBytesOfNode = 200;
  return method ? kBytesOfNode + method->name.capacity() + method->file.capacity() +
                      method->lines.capacity() * sizeof(JavaMethod::Line)
                : 0;
}

}  // namespace

std::variant<HotspotProcess, std::string> HotspotProcess::open(Memory memory,
                                                               const HotspotBinary& binary,
                                                               std::uint64_t bias) {
  const Spender::Scope scope(memory.spender());
  const HotspotStructs structs(memory, binary, bias);
  auto layout = hotspot_layout(memory, structs);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  auto& known = std::get<HotspotLayout>(layout);
  if (binary.return_barrier != 0 && binary.entry_return != 0) {
    known.return_barrier = binary.return_barrier + bias;
    known.entry_return = binary.entry_return + bias;
  }
  HotspotProcess process(std::move(memory), known);
  process.begin_period();
  return process;
}

void HotspotProcess::begin_period() {
  ++period_;
  effort_ = 0;
  has_changed_ = has_changed_ || std::exchange(has_unknown_, false);
  memory_.forget();
  is_gone_ = !memory_.pointer(layout_.heaps);
  if (is_gone_)
    return;
  read_places();
  if (methods_.size() >= kMostMethods) {
    methods_.clear();
    kept_.release();
  }
}

/// Reads where the JVM has its code.
void HotspotProcess::read_places() {
  cache_.read(memory_, layout_);
  call_stub_return_ = memory_.pointer(layout_.call_stub_return).value_or(0);
  if (layout_.return_barrier != 0) {
    return_barrier_ = memory_.pointer(layout_.return_barrier).value_or(0);
    entry_return_ = memory_.pointer(layout_.entry_return).value_or(0);
  }
}

/// Returns false once the effort of this period, or the process's share of the budget, is used up.
bool HotspotProcess::spend(std::size_t effort) {
  effort_ += effort;
  const bool may_read = effort_ <= kMostEffort && memory_.spender().may_go_on();
  has_unknown_ = has_unknown_ || !may_read;
  return may_read;
}

bool HotspotProcess::read_code(std::uint64_t avma, std::span<std::byte> into) {
  return spend(kCodeEffort) && memory_.read(avma, into);
}

std::uint32_t HotspotProcess::continuation_words() {
  const CodeBlob* const entry = entry_return_ != 0 ? code_at(entry_return_ - 1) : nullptr;
  return entry != nullptr ? entry->frame_words : 0;
}

/// Returns code that still is in its place.
HotspotProcess::Code* HotspotProcess::known_code(std::uint64_t avma) {
  const auto after = codes_.upper_bound(avma);
  if (after == codes_.begin())
    return nullptr;
  const auto found = std::prev(after);
  Code& code = found->second;
  if (!code.blob.contains(avma))
    return nullptr;
  if (code.checked == period_)
    return &code;
  // Without memory, the process has ended, or nothing may be read: what is known is still right.
  if (is_gone_ || cache_.blob(memory_, layout_, code.blob.start) == code.blob ||
      memory_.spender().is_over()) {
    code.checked = period_;
    return &code;
  }
  codes_.erase(found);
  has_changed_ = true;
  return nullptr;
}

HotspotProcess::Code* HotspotProcess::new_code(std::uint64_t avma) {
  const Spender::Scope scope(memory_.spender());
  memory_.forget();  // the code may be newer than what was read
  // The period may have started amid the JVM's own start, before the interpreter was made, whose
  // code would be taken for that of a stub.
  if (!cache_.has_interpreter() && spend(kPlacesEffort))
    read_places();
  if (!cache_.contains(avma) || !spend(kSearchEffort))
    return nullptr;
  const auto start = cache_.find(memory_, layout_, avma);
  const auto blob = start ? cache_.blob(memory_, layout_, *start) : std::nullopt;
  if (!blob || !blob->contains(avma)) {
    has_unknown_ = true;
    return nullptr;
  }
  if (codes_.size() >= kMostBlobs) {
    codes_.clear();
    has_changed_ = true;
  }
  const auto [found, is_new] = codes_.insert_or_assign(
      blob->code_start, Code{.blob = *blob, .checked = period_, .functions = {}});
  return &found->second;
}

const CodeBlob* HotspotProcess::code_at(std::uint64_t avma) {
  const Code* code = known_code(avma);
  if (code == nullptr)
    code = new_code(avma);
  return code != nullptr ? &code->blob : nullptr;
}

std::span<const std::uint64_t> HotspotProcess::functions_at(const CodeBlob& blob,
                                                            std::uint64_t avma,
                                                            const OnNew& on_new) {
  const auto code = codes_.find(blob.code_start);
  if (code == codes_.end())
    return {};
  auto& functions = code->second.functions;
  if (const auto known = functions.find(avma); known != functions.end())
    return known->second;
  static constexpr std::uint64_t kUnreadable[] = {0};
  const Spender::Scope scope(memory_.spender());
  if (!spend(1))
    return kUnreadable;
  if (++places_ > kMostPlaces) {
    for (auto& [start, each] : codes_)
      each.functions.clear();
    stubs_.clear();
    places_ = 1;
  }
  return functions[avma] = name(code->second.blob, avma, on_new);
}

/// Returns the stream's addresses for a place in code; never empty.
std::vector<std::uint64_t> HotspotProcess::name(const CodeBlob& blob, std::uint64_t avma,
                                                const OnNew& on_new) {
  constexpr std::size_t kMostStubName = 200;
  std::vector<std::uint64_t> addresses;
  if (blob.kind == CodeBlob::Kind::kMethod) {
    const auto scopes = scopes_at(memory_, layout_, blob, avma);
    spend(scopes.size());
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      const auto kind =
          i + 1 < scopes.size() ? ScriptKind::kJavaInlined : ScriptKind::kJavaCompiled;
      addresses.push_back(
          address_of(scopes[i].method, scopes[i].bytecode, kind, on_new).value_or(0));
    }
    return addresses;
  }
  std::uint64_t& address = stubs_[blob.name];
  const auto name = address == 0 ? read_c_text(memory_, blob.name, kMostStubName) : std::nullopt;
  if (name && !name->empty())
    address = stream::script_address(
        on_new({.name = *name, .file = {}, .line = 0, .kind = ScriptKind::kJavaStub}));
  return {address};
}

std::optional<std::uint64_t> HotspotProcess::interpreted(std::uint64_t method,
                                                         std::uint64_t bytecode,
                                                         const OnNew& on_new) {
  const Method& known = method_at(method);
  const std::uint64_t offset = bytecode - (known.fields.constant + layout_.const_bytes);
  return address_of(method,
                    offset < known.fields.bytecodes ? static_cast<std::uint32_t>(offset) : 0,
                    ScriptKind::kJava, on_new);
}

bool HotspotProcess::is_bytecode_of(std::uint64_t method, std::uint64_t bytecode) {
  const Method& known = method_at(method);
  return known.method &&
         bytecode - (known.fields.constant + layout_.const_bytes) < known.fields.bytecodes;
}

/// Reads a method whose address is new, or has been reused.
HotspotProcess::Method& HotspotProcess::method_at(std::uint64_t avma) {
  Method& known = methods_[avma];
  if (known.checked == period_)
    return known;
  const bool is_new = known.checked == 0;
  known.checked = period_;
  if (is_new && !spend(kMethodEffort)) {
    known.checked = 0;
    return known;
  }
  const auto fields = read_method_fields(memory_, layout_, avma);
  // Without the structure, its process has ended, or the method has: its name is still right.
  if (!is_new && known.method && (!fields || *fields == known.fields))
    return known;
  kept_.release(bytes_of(known.method));
  known = {.fields = fields.value_or(MethodFields{}),
           .method = fields ? read_java_method(memory_, layout_, *fields) : std::nullopt,
           .checked = period_};
  if (!kept_.may_add(bytes_of(known.method)))
    known.method.reset();
  return known;
}

std::optional<std::uint64_t> HotspotProcess::address_of(std::uint64_t method,
                                                        std::uint32_t bytecode, ScriptKind kind,
                                                        const OnNew& on_new) {
  Method& known = method_at(method);
  if (!known.method)
    return std::nullopt;
  std::uint64_t& address = known.addresses[static_cast<std::size_t>(kind)];
  if (address == 0)
    address = stream::script_address(on_new({.name = known.method->name,
                                             .file = known.method->file,
                                             .line = known.method->first_line,
                                             .kind = kind}));
  const std::uint64_t lines = known.method->line_at(bytecode) - known.method->first_line;
  // The last address of a range is left for the one that call chains add.
  return address + std::min<std::uint64_t>(lines, stream::kScriptBytes - 2);
}

}  // namespace pe::languages
