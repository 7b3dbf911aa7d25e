// SPDX-License-Identifier: MIT
#include "languages/node/process.h"

#include <algorithm>
#include <iterator>

namespace pe::languages {
namespace {

using stream::ScriptKind;

constexpr std::size_t kMostV8Codes = 65'536, kMostV8Functions = 262'144, kMostV8Places = 262'144;
/// Effort in a period, of which a unit reads a page or two.
constexpr std::size_t kMostV8Effort = 20'000;
constexpr std::size_t kV8FunctionEffort = 4, kV8BytecodesEffort = 4, kV8CodeEffort = 4;
constexpr std::size_t kMostPositionBytes = 1 << 20;
constexpr std::uint64_t kV8PageBytes = 4096;

/// Returns what a function takes in memory; 0 if there is none.
std::size_t bytes_of(const std::optional<V8Function>& function) {
  constexpr std::size_t kBytesOfNode = 200;
  return function ? kBytesOfNode + function->name.capacity() + function->file.capacity() : 0;
}

}  // namespace

V8Process::V8Process(Memory memory, const V8Layout& layout)
    : memory_(std::make_unique<Memory>(std::move(memory))),
      layout_(std::make_unique<const V8Layout>(layout)),
      heap_(*memory_, *layout_),
      lines_(memory_->spender()),
      kept_(memory_->spender()),
      kept_tables_(memory_->spender()) {}

void V8Process::begin_period() {
  ++period_;
  effort_ = 0;
  has_changed_ = has_changed_ || std::exchange(has_unknown_, false);
  memory_->forget();
  vain_.clear();
  if (functions_.size() >= kMostV8Functions) {
    functions_.clear();
    kept_.release();
  }
  if (bytecodes_.size() >= kMostV8Functions)
    bytecodes_.clear();
  pay_for_tables();
}

/// Pays for what the tables have grown since the last time, or clears them if there is no room.
void V8Process::pay_for_tables() {
  constexpr std::size_t kBytesOfNode = 64;
  const std::size_t bytes = codes_.size() * (sizeof(Code) + kBytesOfNode) +
                            bytecodes_.size() * (sizeof(Bytecodes) + kBytesOfNode) +
                            (places_ + listed_.size() + scripts_.size()) * kBytesOfNode;
  if (bytes < kept_tables_.bytes())
    kept_tables_.release(kept_tables_.bytes() - bytes);
  else if (!kept_tables_.may_add(bytes - kept_tables_.bytes())) {
    codes_.clear();
    bytecodes_.clear();
    listed_.clear();
    scripts_.clear();
    places_ = 0;
    kept_tables_.release();
    has_changed_ = true;
  }
}

/// Returns false once the effort of this period, or the process's share of the budget, is used up.
bool V8Process::spend(std::size_t effort) {
  effort_ += effort;
  const bool may_read = effort_ <= kMostV8Effort && memory_->spender().may_go_on(effort);
  has_unknown_ = has_unknown_ || !may_read;
  return may_read;
}

bool V8Process::read_code(std::uint64_t avma, std::span<std::byte> into) {
  return spend(kV8CodeEffort) && memory_->read(avma, into);
}

/// Returns code that still is in its place.
V8Process::Code* V8Process::known_code(std::uint64_t avma) {
  const auto after = codes_.upper_bound(avma);
  if (after == codes_.begin())
    return nullptr;
  const auto found = std::prev(after);
  Code& code = found->second;
  if (!code.fields.contains(avma))
    return nullptr;
  if (code.checked == period_)
    return &code;
  const auto now = read_v8_code(heap_, code.fields.start);
  // Without memory, the process has ended: what is known is still right.
  if (now == code.fields || (!now && !memory_->value<std::byte>(code.fields.start))) {
    code.checked = period_;
    return &code;
  }
  codes_.erase(found);
  has_changed_ = true;
  return nullptr;
}

const V8CodeFields* V8Process::code_at(std::uint64_t avma, std::uint64_t lowest) {
  if (Code* const known = known_code(avma))
    return &known->fields;
  const std::uint64_t page = avma / kV8PageBytes;
  if (vain_.contains(page))
    return nullptr;
  const Spender::Scope scope(memory_->spender());
  memory_->forget();  // the code may be newer than what was read
  const auto found = find_v8_code(heap_, avma, lowest, [this] { return spend(1); });
  if (!found) {
    has_unknown_ = true;
    vain_.insert(page);
    return nullptr;
  }
  if (codes_.size() >= kMostV8Codes) {
    codes_.clear();
    has_changed_ = true;
  }
  // Code that was there before is gone.
  codes_.erase(codes_.lower_bound(found->start), codes_.lower_bound(found->end));
  return &codes_.emplace(found->start, Code{.fields = *found, .checked = period_})
              .first->second.fields;
}

std::span<const std::uint64_t> V8Process::functions_at(const V8CodeFields& code, std::uint64_t avma,
                                                       const V8Frame& frame, const OnNew& on_new) {
  static constexpr std::uint64_t kUnreadable[] = {0};
  const auto found = codes_.find(code.start);
  if (found == codes_.end())
    return kUnreadable;
  auto& functions = found->second.functions;
  if (const auto known = functions.find(avma); known != functions.end())
    return known->second;
  const Spender::Scope scope(memory_->spender());
  if (!spend(1))
    return kUnreadable;
  if (++places_ > kMostV8Places) {
    for (auto& [start, each] : codes_)
      each.functions.clear();
    for (auto& [start, each] : bytecodes_)
      each.places.clear();
    places_ = 1;
  }
  unkept_ = name(found->second, avma, frame, on_new);
  if (std::ranges::find(unkept_, 0U) != unkept_.end())
    return unkept_;  // the next frame there may help
  return functions[avma] = unkept_;
}

/// Returns the stream's addresses for a place in code; never empty.
std::vector<std::uint64_t> V8Process::name(Code& code, std::uint64_t avma, const V8Frame& frame,
                                           const OnNew& on_new) {
  using Kind = V8CodeFields::Kind;
  switch (code.fields.kind) {
    case Kind::kMaglev:
    case Kind::kTurbofan:
      return name_optimized(code, avma, frame, on_new);
    case Kind::kBaseline: {
      auto bytecodes = code.fields.data;
      if (heap_.has_type(bytecodes, layout_->interpreter_data))
        bytecodes = heap_.field(bytecodes, layout_->interpreter_bytecodes).value_or(0);
      const Bytecodes* const known = bytecodes_at(bytecodes, frame.function);
      return {known != nullptr
                  ? address_of(known->shared, std::nullopt, ScriptKind::kNodeCompiled, on_new)
                        .value_or(0)
                  : 0};
    }
    case Kind::kRegExp:
    case Kind::kOther:
      break;
  }
  const bool is_regexp = code.fields.kind == Kind::kRegExp;
  std::uint64_t& address = stubs_[is_regexp ? 1 : 0];
  if (address == 0)
    address = stream::script_address(on_new({.name = is_regexp ? "RegExp" : "V8 stub",
                                             .file = {},
                                             .line = 0,
                                             .kind = ScriptKind::kNodeStub}));
  return {address};
}

/// Whether a function has that code, which has no deoptimization data.
bool V8Process::is_code_of(const V8CodeFields& code, std::uint64_t function) {
  if (layout_->code_handle == 0)
    return heap_.field(function, layout_->function_code) == code.code;
  const auto handle = heap_.number<std::uint32_t>(function, layout_->function_code);
  return handle && handle == heap_.number<std::uint32_t>(code.code, layout_->code_handle);
}

std::vector<std::uint64_t> V8Process::name_optimized(Code& code, std::uint64_t avma,
                                                     const V8Frame& frame, const OnNew& on_new) {
  if (!std::exchange(code.has_positions, true)) {
    code.positions =
        heap_.bytes(code.fields.positions, kMostPositionBytes).value_or(std::vector<std::byte>());
    code.kept = KeptBytes(memory_->spender());
    if (!code.kept.may_add(code.positions.size()))
      code.positions = {};
  }
  spend(1 + code.positions.size() / kV8PageBytes);
  auto scopes = v8_scopes_at(heap_,
                             {.deopt_data = code.fields.data,
                              .table = code.positions,
                              .may_lack_entries = code.fields.kind == V8CodeFields::Kind::kMaglev,
                              .calls = code.fields.end,
                              .may_read = [this](std::size_t pages) { return spend(pages); }},
                             static_cast<std::uint32_t>(avma - code.fields.start));
  if (!spend(0))
    return {0};  // what is known may be a part
  if (scopes.empty())
    if (const auto shared = shared_of_function(heap_, frame.function);
        shared && is_code_of(code.fields, frame.function))
      scopes.push_back({*shared, std::nullopt});
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const auto kind = i + 1 < scopes.size() ? ScriptKind::kNodeInlined : ScriptKind::kNodeCompiled;
    addresses.push_back(address_of(scopes[i].shared, scopes[i].offset, kind, on_new).value_or(0));
  }
  if (addresses.empty())
    addresses.push_back(0);
  return addresses;
}

/// Lists the functions of a script that have a BytecodeArray.
void V8Process::list(std::uint64_t script) {
  constexpr std::uint32_t kMostListed = 100'000, kPerPage = 64;
  if (listed_.size() >= kMostV8Functions) {
    listed_.clear();
    scripts_.clear();
  }
  scripts_[script] = period_;
  const auto functions = heap_.field(script, layout_->script_functions).value_or(0);
  for (std::uint32_t i = 0; i < kMostListed; ++i) {
    const auto word = heap_.element(functions, i);
    if (!word || (i % kPerPage == 0 && !spend(2)))
      return;
    // The references are weak, and those to dead functions have no address.
    const std::uint64_t shared = V8Heap::address(*word) + 1;
    auto data = V8Heap::is_object(*word) ? heap_.field(shared, layout_->shared_data) : std::nullopt;
    if (data && V8Heap::is_strong(*data) && heap_.has_type(*data, layout_->code))
      data = heap_.field(*data, layout_->code_bytecodes);
    if (data && V8Heap::is_strong(*data))
      listed_[*data] = shared;
  }
}

std::optional<std::uint64_t> V8Process::listed(std::uint64_t bytecodes) {
  const auto found = listed_.find(bytecodes);
  return found != listed_.end() && bytecodes_of(heap_, found->second) == bytecodes
             ? std::optional(found->second)
             : std::nullopt;
}

/// Searches the scripts for the function with that BytecodeArray.
std::optional<std::uint64_t> V8Process::search(std::uint64_t bytecodes) {
  if (const auto found = listed(bytecodes))
    return found;
  if (!heap_.has_type(bytecodes, layout_->bytecode_array))
    return std::nullopt;
  // Functions that it makes are in the same script.
  constexpr std::uint32_t kMostConstants = 64;
  const auto constants = heap_.field(bytecodes, layout_->bytecode_constants).value_or(0);
  for (std::uint32_t i = 0; i < kMostConstants; ++i) {
    const auto constant = heap_.element(constants, i);
    if (!constant)
      break;
    const auto fields =
        V8Heap::is_strong(*constant) ? read_v8_fields(heap_, *constant) : std::nullopt;
    if (!fields || !heap_.has_type(fields->script, layout_->script))
      continue;
    if (const auto known = scripts_.find(fields->script);
        known == scripts_.end() || known->second != period_)
      list(fields->script);
    break;
  }
  auto found = listed(bytecodes);
  std::vector<std::uint64_t> outdated;
  for (const auto& [script, when] : scripts_)
    if (when != period_)
      outdated.push_back(script);
  for (std::size_t i = 0; i < outdated.size() && !found && spend(1); ++i) {
    list(outdated[i]);
    found = listed(bytecodes);
  }
  return found;
}

/// Returns the function of a BytecodeArray; null if it is unknown.  `function` is the JSFunction of
/// its frame.
V8Process::Bytecodes* V8Process::bytecodes_at(std::uint64_t bytecodes, std::uint64_t function) {
  if (!V8Heap::is_strong(bytecodes))
    return nullptr;
  Bytecodes& known = bytecodes_[bytecodes];
  if (known.checked == period_)
    return &known;
  const Spender::Scope scope(memory_->spender());
  if (!spend(kV8BytecodesEffort))
    return nullptr;
  auto shared = shared_of_function(heap_, function);
  if (!shared || bytecodes_of(heap_, *shared) != bytecodes) {
    // Without memory, the process has ended: what is known is still right.
    const bool is_same =
        known.shared != 0 && (bytecodes_of(heap_, known.shared) == bytecodes ||
                              !memory_->value<std::byte>(V8Heap::address(known.shared)));
    shared = is_same ? std::optional(known.shared) : search(bytecodes);
  }
  if (!shared)
    return nullptr;
  if (known.shared != *shared)
    known = {.shared = *shared};
  known.checked = period_;
  const Function& of = function_at(*shared);
  if (!scripts_.contains(of.fields.script) && heap_.has_type(of.fields.script, layout_->script))
    list(of.fields.script);
  return &known;
}

std::optional<std::uint64_t> V8Process::interpreted(const V8Frame& frame, const OnNew& on_new) {
  Bytecodes* const known = bytecodes_at(frame.bytecodes, frame.function);
  if (known == nullptr)
    return std::nullopt;
  // It counts from the tagged address of the BytecodeArray.
  const std::uint32_t first = layout_->bytecodes - 1;
  const auto current = V8Heap::small_integer(frame.bytecode_offset);
  const std::uint32_t offset = current && *current >= static_cast<std::int32_t>(first)
                                   ? static_cast<std::uint32_t>(*current) - first
                                   : 0;
  if (const auto place = known->places.find(offset); place != known->places.end())
    return place->second;
  const Spender::Scope scope(memory_->spender());
  const std::uint64_t shared = known->shared;
  const auto table = heap_.field(frame.bytecodes, layout_->bytecode_positions);
  const auto content =
      table && V8Heap::is_strong(*table) ? heap_.bytes(*table, kMostPositionBytes) : std::nullopt;
  spend(1 + (content ? content->size() / kV8PageBytes : 0));
  const auto position =
      content ? v8_position_at(*content, offset, layout_->has_position_marks) : std::nullopt;
  const auto address =
      address_of(shared, position ? std::optional(position->position.offset) : std::nullopt,
                 ScriptKind::kNode, on_new);
  if (address && ++places_ <= kMostV8Places)
    bytecodes_[frame.bytecodes].places.emplace(offset, *address);
  return address;
}

bool V8Process::is_frame_of(const V8CodeFields& code, const V8Frame& frame) {
  const auto shared = shared_of_function(heap_, frame.function);
  if (code.kind == V8CodeFields::Kind::kBaseline)
    return shared && bytecodes_of(heap_, *shared) == code.data;
  const auto scopes = v8_scopes_at(heap_, {.deopt_data = code.data}, 0);
  return shared && !scopes.empty() && scopes.back().shared == shared;
}

bool V8Process::is_of_script(const V8Frame& frame) {
  const auto shared = shared_of_function(heap_, frame.function);
  return shared && !is_builtin_function(heap_, *shared);
}

/// Reads a function whose address is new, or has been reused.
V8Process::Function& V8Process::function_at(std::uint64_t shared) {
  Function& known = functions_[shared];
  if (known.checked == period_)
    return known;
  const bool is_new = known.checked == 0;
  if (is_new && !spend(kV8FunctionEffort))
    return known;
  const auto fields = read_v8_fields(heap_, shared);
  known.checked = period_;
  // Without the structure, its process has ended, or the function has: its name is still right.
  if (!is_new && known.function && (!fields || *fields == known.fields))
    return known;
  kept_.release(bytes_of(known.function));
  known = {.fields = fields.value_or(V8FunctionFields{}),
           .function = fields ? read_v8_function(heap_, *fields) : std::nullopt,
           .checked = period_};
  if (!kept_.may_add(bytes_of(known.function)))
    known.function.reset();
  if (known.function && known.function->start)
    known.line = lines_.line(heap_, known.fields.script, *known.function->start,
                             [this](std::size_t pages) { return spend(pages); });
  return known;
}

std::optional<std::uint64_t> V8Process::address_of(std::uint64_t shared,
                                                   std::optional<std::uint32_t> offset,
                                                   ScriptKind kind, const OnNew& on_new) {
  Function& known = function_at(shared);
  if (!known.function)
    return std::nullopt;
  std::uint64_t& address = known.addresses[static_cast<std::size_t>(kind)];
  if (address == 0)
    address = stream::script_address(on_new({.name = known.function->name,
                                             .file = known.function->file,
                                             .line = known.line,
                                             .kind = kind}));
  const std::uint32_t line = offset && known.line != 0
                                 ? lines_.line(heap_, known.fields.script, *offset,
                                               [this](std::size_t pages) { return spend(pages); })
                                 : 0;
  // The last address of a range is left for the one that call chains add.
  return address + (line > known.line
                        ? std::min<std::uint64_t>(line - known.line, stream::kScriptBytes - 2)
                        : 0);
}

}  // namespace pe::languages
