// SPDX-License-Identifier: MIT
#include "pe-symbolize/code_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "unwind/x86_64_calls.h"

namespace pe::symbolize {
namespace {

using Flow = unwind::Instruction::Flow;

constexpr std::byte kDistanceCall{0xe8}, kGroup5{0xff};
constexpr std::size_t kDistanceCallBytes = 5;

/// Returns the four bytes at the end of an instruction, as a distance from `next_svma`.
std::uint64_t at_distance(std::uint64_t next_svma, Bytes four) {
  std::int32_t distance = 0;
  std::memcpy(&distance, four.data(), sizeof distance);
  return next_svma + static_cast<std::uint64_t>(std::int64_t{distance});
}

/// Returns the svma of the slot if the instruction is `jmp *distance(%rip)`.
std::optional<std::uint64_t> slot_of_jump(Bytes instruction, std::uint64_t next_svma) {
  constexpr std::size_t kBytes = 6;
  constexpr std::byte kThroughRip{0x25};
  if (instruction.size() < kBytes)
    return std::nullopt;
  const Bytes last = instruction.last(kBytes);
  if (last[0] != kGroup5 || last[1] != kThroughRip)
    return std::nullopt;
  return at_distance(next_svma, last.last(4));
}

/// Does the jump to a register take its address from the table of a switch?  Compilers then add an
/// entry of the table to the table's address, and with IBT the jump has the prefix notrack.
/// `before` is the instruction before the jump.
bool is_of_switch(Bytes jump, Bytes before) {
  constexpr std::byte kNoTrack{0x3e}, kAdd1{0x01}, kAdd2{0x03}, kWide{0x48}, kWideMask{0xf8};
  constexpr std::byte kOfRegisters{0xc0};
  if (jump.front() == kNoTrack)
    return true;
  const bool is_to_register = (jump.back() & kOfRegisters) == kOfRegisters && jump.size() <= 3;
  return is_to_register && before.size() == 3 && (before[0] & kWideMask) == kWide &&
         (before[1] == kAdd1 || before[1] == kAdd2) && (before[2] & kOfRegisters) == kOfRegisters;
}

/// Returns the svma of the table if the instruction is `jmp *table(,%index,8)`: that of a switch in
/// code at a fixed address, or a table of functions.
std::optional<std::uint64_t> table_of_jump(Bytes jump) {
  constexpr std::byte kSib{0x24}, kWithoutBase{0xc5}, kBaseMask{0xc7};
  constexpr std::size_t kBytes = 7;
  if (jump.size() < kBytes)
    return std::nullopt;
  const Bytes last = jump.last(kBytes);
  if (last[0] != kGroup5 || last[1] != kSib || (last[2] & kBaseMask) != kWithoutBase)
    return std::nullopt;
  return at_distance(0, last.last(4));
}

/// Does the instruction put on the stack what `ret` then takes for a return address?
bool is_push(Bytes instruction) {
  constexpr std::byte kPush{0x50}, kPushMask{0xf8}, kRexB{0x41}, kPushNumber{0x68};
  constexpr std::byte kPushOperand{0x30}, kOperationMask{0x38};
  if (instruction.empty())
    return false;
  const bool has_rex = instruction.size() == 2 && instruction.front() == kRexB;
  if (instruction.size() == 1 || has_rex)
    return (instruction.back() & kPushMask) == kPush;
  return instruction.front() == kPushNumber ||
         (instruction.front() == kGroup5 && (instruction[1] & kOperationMask) == kPushOperand);
}

/// Does code run on after its last instruction?  Not after a jump, a return or a trap, and a call
/// that is the last instruction does not return.
bool runs_on(Bytes code, Bytes last, Flow flow) {
  constexpr std::byte kInt3{0xcc}, kHlt{0xf4}, kTwoBytes{0x0f}, kUd2{0x0b};
  if (last.empty() || (flow != Flow::kNext && flow != Flow::kBranch))
    return false;
  if (last.front() == kInt3 || last.front() == kHlt ||
      (last.size() == 2 && last[0] == kTwoBytes && last[1] == kUd2))
    return false;
  std::array<std::byte, unwind::x86_64::kCallBytes> end{};
  const std::size_t size = std::min(end.size(), code.size());
  std::ranges::copy(code.last(size), end.end() - static_cast<std::ptrdiff_t>(size));
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, end.data(), sizeof bytes);
  return unwind::x86_64::ends_in_call(bytes) == 0;
}

/// Is this the start of the code to which a signal handler returns?  mov $15,%rax or %eax; syscall.
bool is_signal_return(Bytes code) {
  constexpr std::array<unsigned char, 9> kWide = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  constexpr std::array<unsigned char, 7> kShort = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
  const auto starts_with = [code](const auto& bytes) {
    return code.size() >= bytes.size() && std::memcmp(code.data(), bytes.data(), bytes.size()) == 0;
  };
  return starts_with(kWide) || starts_with(kShort);
}

}  // namespace

std::string_view without_part(std::string_view symbol) {
  constexpr std::array<std::string_view, 10> kSuffixes = {
      ".cold",  ".part.",   ".isra.",      ".constprop.", ".lto_priv.",
      ".llvm.", ".__part.", ".localalias", ".warm",       ".unlikely"};
  std::size_t end = symbol.size();
  for (const std::string_view suffix : kSuffixes)
    end = std::min(end, symbol.find(suffix, 1));
  return symbol.substr(0, end);
}

CodeReader::CodeReader(objects::Image image, Spender spender, Source source)
    : image_(std::move(image)), spender_(spender), source_(std::move(source)) {
  image_.pay_by(spender_);
}

const unwind::FunctionRanges& CodeReader::ranges() {
  if (ranges_ == nullptr)
    ranges_ = source_.ranges();
  return *ranges_;
}

bool CodeReader::reopen() {
  auto again = source_.open ? source_.open() : std::nullopt;
  if (!again)
    return false;
  image_ = std::move(*again);
  image_.pay_by(spender_);
  return true;
}

/// Fills `into` from the file, which it may open again.
bool CodeReader::read_at(std::uint64_t file_offset, std::span<std::byte> into) {
  if (image_.read_at(file_offset, into))
    return true;
  return !is_open() && reopen() && image_.read_at(file_offset, into);
}

/// Fills `into` with code; false if not all of it is code of the file.
bool CodeReader::read(std::uint64_t svma, std::span<std::byte> into) {
  const auto offset = file_offset_of(svma);
  if (!offset || into.empty() ||
      file_offset_of(svma + into.size() - 1) != *offset + into.size() - 1)
    return false;
  const std::uint64_t within = *offset % kPageBytes;
  if (within + into.size() > kPageBytes)
    return read_at(*offset, into);
  const std::uint64_t page = *offset / kPageBytes;
  auto& kept = pages_[page % pages_.size()];
  if (!kept || kept->number != page) {
    const std::uint64_t at = page * kPageBytes;
    const std::uint64_t size = std::min<std::uint64_t>(kPageBytes, image_.size_bytes() - at);
    if (!kept)
      kept = std::make_unique_for_overwrite<Page>();
    kept->number = kNoPage;
    if (!read_at(at, std::span(kept->bytes).first(static_cast<std::size_t>(size))))
      return false;
    kept->number = page;
  }
  std::copy_n(kept->bytes.begin() + static_cast<std::ptrdiff_t>(within), into.size(), into.begin());
  return true;
}

bool CodeReader::is_stub(std::uint64_t svma) const noexcept {
  return std::ranges::any_of(image_.sections(), [svma](const objects::Section& section) {
    return section.name.starts_with(".plt") && section.covers(svma);
  });
}

std::optional<CodeReader::Range> CodeReader::function_at(std::uint64_t svma) {
  const auto range = ranges().range_of(svma);
  if (!range || is_stub(svma))
    return std::nullopt;
  // The unwind information of a signal return starts one byte before its code (glibc,
  // sysdeps/unix/sysv/linux/x86_64/sigaction.c).
  std::array<std::byte, 10> start{};
  const auto size = std::min<std::uint64_t>(start.size(), range->end_svma - range->start_svma);
  const auto code = std::span(start).first(static_cast<std::size_t>(size));
  if (!read(range->start_svma, code) || is_signal_return(code) || is_signal_return(code.subspan(1)))
    return std::nullopt;
  return range;
}

std::optional<std::vector<std::byte>> CodeReader::code_of(const Range& function) {
  const std::uint64_t size = function.end_svma - function.start_svma;
  if (size > kMostFunctionBytes || size > kMostDecodedBytes - decoded_bytes_)
    return std::nullopt;
  decoded_bytes_ += size;
  std::vector<std::byte> code(static_cast<std::size_t>(size));
  return read(function.start_svma, code) ? std::optional(std::move(code)) : std::nullopt;
}

/// Is there the start of an instruction?  Processes that share the file ask again.
bool CodeReader::is_instruction(std::uint64_t svma) {
  const auto [known, is_new] = calls_.try_emplace(svma);
  if (is_new)
    known->second = decodes_to(svma);
  return known->second;
}

bool CodeReader::decodes_to(std::uint64_t svma) {
  const auto function = ranges().range_of(svma);
  const auto code = function ? code_of(*function) : std::nullopt;
  std::uint64_t at = function ? function->start_svma : 0;
  for (std::size_t done = 0; code && at < svma && image_.may_go_on(); at += done) {
    const auto instruction = unwind::decode_x86_64(
        Bytes(*code).subspan(static_cast<std::size_t>(at - function->start_svma)));
    if (!instruction)
      return false;
    done = instruction->bytes;
  }
  return code && at == svma;
}

std::optional<std::string> CodeReader::symbol_of_slot(std::uint64_t slot_svma) {
  constexpr std::size_t kMostSlots = 1U << 18;
  if (!std::exchange(has_slots_, true) && (is_open() || !source_.open || reopen()))
    objects::for_each_slot(image_, [this](std::uint64_t slot, const auto& symbol) {
      slots_.try_emplace(slot, symbol());
      return slots_.size() < kMostSlots;
    });
  const auto slot = slots_.find(slot_svma);
  // "*ABS*+0x1234" is a function that a resolver chooses.
  if (slot == slots_.end() || slot->second.empty() || slot->second.front() == '*')
    return std::nullopt;
  return slot->second;
}

/// Returns the function to which a stub jumps.
std::optional<Target> CodeReader::behind_stub(std::uint64_t svma) {
  std::array<std::byte, 16> code{};
  if (!read(svma, code))
    return std::nullopt;
  constexpr std::array<unsigned char, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
  const std::size_t start = std::memcmp(code.data(), kEndbr64.data(), 4) == 0 ? 4 : 0;
  const Bytes jump = Bytes(code).subspan(start);
  const auto instruction = unwind::decode_x86_64(jump);
  if (!instruction || instruction->flow != Flow::kIndirectJump)
    return std::nullopt;
  const auto slot = slot_of_jump(jump.first(instruction->bytes), svma + start + instruction->bytes);
  auto symbol = slot ? symbol_of_slot(*slot) : std::nullopt;
  return symbol ? std::optional(Target{.symbol = std::move(*symbol)}) : std::nullopt;
}

/// Returns the function that starts there, also through a stub.
std::optional<Target> CodeReader::target_at(std::uint64_t svma) {
  if (is_stub(svma))
    return behind_stub(svma);
  const auto function = ranges().range_of(svma);
  return function && function->start_svma == svma ? std::optional(Target{.svma = svma})
                                                  : std::nullopt;
}

std::optional<CodeReader::Call> CodeReader::call_before(std::uint64_t return_svma) {
  constexpr std::size_t kSlotCallBytes = 6;
  constexpr std::byte kThroughRip{0x15};
  std::array<std::byte, unwind::x86_64::kCallBytes> before{};
  // Before the first function there may be fewer bytes; zeros are in their place.
  std::size_t known = before.size();
  while (known >= kDistanceCallBytes && !read(return_svma - known, std::span(before).last(known)))
    --known;
  if (known < kDistanceCallBytes)
    return std::nullopt;
  const Call call{at_distance(return_svma, Bytes(before).last(4))};
  if (before[before.size() - kDistanceCallBytes] == kDistanceCall) {
    std::uint64_t others = 0;  // the bytes without e8: another call may end here
    before[before.size() - kDistanceCallBytes] = std::byte{0};
    std::memcpy(&others, before.data(), sizeof others);
    const bool is_certain = unwind::x86_64::ends_in_call(others) == 0 ||
                            is_instruction(return_svma - kDistanceCallBytes);
    return is_certain ? std::optional(call) : std::nullopt;
  }
  if (before[before.size() - kSlotCallBytes] != kGroup5 ||
      before[before.size() - kSlotCallBytes + 1] != kThroughRip)
    return std::nullopt;
  return Call{call.svma, true};
}

std::optional<Target> CodeReader::target_of(const Call& call) {
  if (!call.is_by_slot)
    return target_at(call.svma);
  auto symbol = symbol_of_slot(call.svma);
  return symbol ? std::optional(Target{.symbol = std::move(*symbol)}) : std::nullopt;
}

/// Does a jump to a computed address surely leave the function?
bool CodeReader::leaves_by_table(const Step& step, const Range& function) {
  if (is_of_switch(step.bytes, step.before))
    return false;
  const auto table = table_of_jump(step.bytes);
  const auto first = table ? image_.loaded_bytes(*table, sizeof(std::uint64_t)) : std::nullopt;
  const auto entry = first ? ByteReader(first->bytes).take<std::uint64_t>() : std::nullopt;
  return !entry || !function.covers(*entry);
}

/// Adds the jump of one instruction if it may leave the function.
void CodeReader::add_jump(const Step& step, const Range& function, Jumps& jumps) {
  const Flow flow = step.instruction.flow;
  if (flow == Flow::kIndirectJump) {
    const auto slot = slot_of_jump(step.bytes, step.next_svma);
    if (auto symbol = slot ? symbol_of_slot(*slot) : std::nullopt)
      jumps.named.push_back({step.next_svma, {.symbol = std::move(*symbol)}, false});
    else
      (leaves_by_table(step, function) ? jumps.has_computed : jumps.has_switch) = true;
  }
  if (flow == Flow::kReturn && is_push(step.before))
    jumps.has_computed = true;
  // A call into the function itself changes its return address: that is a thunk for an indirect
  // jump.
  if (step.bytes.front() == kDistanceCall && step.bytes.size() == kDistanceCallBytes &&
      function.covers(at_distance(step.next_svma, step.bytes.last(4))) &&
      at_distance(step.next_svma, step.bytes.last(4)) != function.start_svma)
    jumps.has_computed = true;
  const std::uint64_t svma = step.next_svma + static_cast<std::uint64_t>(step.instruction.target);
  if ((flow != Flow::kJump && flow != Flow::kBranch) || function.covers(svma))
    return;
  if (auto target = target_at(svma))
    jumps.named.push_back({step.next_svma, std::move(*target), flow == Flow::kBranch});
  else if (is_stub(svma))
    jumps.has_computed = true;
  else
    jumps.into_middle.push_back(svma);
}

Jumps CodeReader::jumps_of(const Range& function) {
  constexpr std::size_t kMost = 4096, kStepsOfTurn = 64;
  std::size_t steps = 0;
  Jumps jumps;
  const auto code = code_of(function);
  Bytes before;
  Flow flow = Flow::kNext;
  for (std::size_t at = 0; code && at < code->size();) {
    const auto instruction = unwind::decode_x86_64(Bytes(*code).subspan(at));
    if (!instruction || (++steps % kStepsOfTurn == 0 && !image_.may_go_on()) ||
        jumps.named.size() + jumps.into_middle.size() >= kMost)
      return jumps;
    const Bytes bytes = Bytes(*code).subspan(at, instruction->bytes);
    at += instruction->bytes;
    add_jump({*instruction, bytes, before, function.start_svma + at}, function, jumps);
    before = bytes;
    flow = instruction->flow;
  }
  jumps.is_whole = code && !runs_on(*code, before, flow);
  return jumps;
}

std::optional<std::vector<objects::Export>> CodeReader::exports_of(std::string_view symbol) {
  if (!exports_)
    exports_ = is_open() || !source_.open || reopen() ? objects::ExportTable(image_)
                                                      : objects::ExportTable();
  return exports_->is_known() ? std::optional(exports_->find(image_, symbol)) : std::nullopt;
}

}  // namespace pe::symbolize
