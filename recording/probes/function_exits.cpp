// SPDX-License-Identifier: MIT
#include "recording/probes/function_exits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "objects/go_functions.h"
#include "objects/image.h"
#include "recording/probes/function_code.h"
#include "recording/probes/resolve.h"

namespace pe::unwind {
namespace {

using Flow = Instruction::Flow;

/// Limits of what is followed, as one probe costs a descriptor on each CPU.
constexpr std::size_t kMostFunctions = 64, kMostExits = 500;

/// The jumps and returns of a function that are reached.
struct Code {
  struct Jump {
    std::uint64_t svma, target;
    bool is_conditional;
  };
  std::vector<std::uint64_t> returns;
  /// To other code.  A conditional one that cannot be followed is no exit, as it may continue here.
  std::vector<Jump> leaving;
  std::vector<std::uint64_t> indirect;  ///< jumps without a stack frame, to a function
  std::size_t unknown = 0;              ///< other indirect jumps without a known table
  bool runs_over_end = false;           ///< the last instruction may be followed by another
};

/// Returns a byte of an instruction; 0 beyond its end.
unsigned byte_at(Bytes instruction, std::size_t i) {
  return i < instruction.size() ? std::to_integer<unsigned>(instruction[i]) : 0;
}

/// Does the instruction remove a part of the stack frame: pop, leave, or add to rsp?
bool removes_frame(Bytes instruction) {
  const auto byte = [&](std::size_t i) { return byte_at(instruction, i); };
  const std::size_t first = byte(0) == 0x41 ? 1 : 0;
  const bool is_pop = byte(first) >= 0x58 && byte(first) <= 0x5f;
  const bool is_add = byte(0) == 0x48 && (byte(1) == 0x83 || byte(1) == 0x81) && byte(2) == 0xc4;
  return is_pop || is_add || byte(0) == 0xc9;
}

/// Does the instruction make a stack frame: push, or subtract from rsp?
bool makes_frame(Bytes instruction) {
  const auto byte = [&](std::size_t i) { return byte_at(instruction, i); };
  const std::size_t first = byte(0) == 0x41 ? 1 : 0;
  const bool is_push = byte(first) >= 0x50 && byte(first) <= 0x57;
  return is_push || (byte(0) == 0x48 && (byte(1) == 0x83 || byte(1) == 0x81) && byte(2) == 0xec);
}

/// May a function end with this instruction: a call of what never returns, a trap, or padding?
bool ends_code(Bytes instruction) {
  const auto byte = [&](std::size_t i) { return byte_at(instruction, i); };
  const std::size_t at = (byte(0) & 0xf0U) == 0x40 ? 1 : 0;
  const bool is_indirect_call = byte(at) == 0xff && (byte(at + 1) & 0x38U) == 0x10;
  const bool is_trap = byte(0) == 0xcc || byte(0) == 0xf4 || (byte(0) == 0x0f && byte(1) == 0x0b);
  const bool is_padding =
      byte(0) == 0x90 || byte(0) == 0x66 || (byte(0) == 0x0f && byte(1) == 0x1f);
  return byte(0) == 0xe8 || is_indirect_call || is_trap || is_padding;
}

/// Does an indirect jump belong to a switch statement: `notrack jmp`, `jmp [TABLE + 8 * reg]`, or
/// `jmp reg` after an addition to the table's address?
bool is_by_table(Bytes before, Bytes jump) {
  if (byte_at(jump, 0) == 0x3e)
    return true;
  const std::size_t at = (byte_at(jump, 0) & 0xf0U) == 0x40 ? 1 : 0;
  const bool has_index = byte_at(jump, at) == 0xff && byte_at(jump, at + 1) == 0x24 &&
                         (byte_at(jump, at + 2) & 0xc0U) == 0xc0;
  const bool is_addition = (byte_at(before, 0) & 0xf8U) == 0x48 &&
                           (byte_at(before, 1) == 0x01 || byte_at(before, 1) == 0x03);
  return has_index || is_addition;
}

/// Lists the jumps and returns of a function that has been followed.
class Summary {
 public:
  explicit Summary(const FunctionCode& function) : function_(function), code_(function.code()) {}

  Code run() {
    for (std::size_t number = 0; number < code_.steps().size(); ++number) {
      const Bytes here = code_.bytes_of(code_.steps()[number]);
      if (function_.is_reached(number))
        add(number, here);
      frame_is_gone_ = removes_frame(here);
      has_frame_ = has_frame_ || makes_frame(here);
      before_ = here;
    }
    const std::set<std::uint64_t> far(function_.far_entries().begin(),
                                      function_.far_entries().end());
    for (const std::uint64_t target : far)
      result_.leaving.push_back({target, target, true});
    return std::move(result_);
  }

 private:
  void add(std::size_t number, Bytes here) {
    const DecodedCode::Step& step = code_.steps()[number];
    const bool is_direct = step.flow == Flow::kJump || step.flow == Flow::kBranch;
    if (step.flow == Flow::kReturn)
      result_.returns.push_back(step.svma);
    else if (step.flow == Flow::kIndirectJump && !function_.has_table(number))
      add_indirect(step.svma, here);
    else if (is_direct && (!code_.covers(step.target) || step.target == code_.start_svma()))
      result_.leaving.push_back({step.svma, step.target, step.flow == Flow::kBranch});
    if (number + 1 == code_.steps().size())
      result_.runs_over_end =
          step.flow == Flow::kBranch || (step.flow == Flow::kNext && !ends_code(here));
  }

  void add_indirect(std::uint64_t svma, Bytes jump) {
    if (frame_is_gone_ || (!has_frame_ && !is_by_table(before_, jump)))
      result_.indirect.push_back(svma);
    else
      ++result_.unknown;
  }

  const FunctionCode& function_;
  const DecodedCode& code_;
  Code result_;
  bool has_frame_ = false, frame_is_gone_ = false;
  Bytes before_;
};

class ExitFinder {
 public:
  ExitFinder(const objects::Image& image, const FunctionRanges& ranges, std::uint64_t svma)
      : image_(image), ranges_(ranges), start_(svma), is_go_(objects::is_go_program(image)) {}

  FunctionExits find() {
    const auto range = ranges_.range_of(start_);
    if (!range || range->start_svma != start_)
      return {.svmas = {}, .problem = "no unwind information states where it ends"};
    follow(start_);
    while (!left_.empty()) {
      const std::uint64_t target = left_.back();
      left_.pop_back();
      follow(target);
    }
    if (!is_followed(start_))
      return {.svmas = {}, .problem = "its code cannot be decoded"};
    add(Summary(*functions_.at(start_)).run());
    const std::size_t own = exits_.svmas.size();
    for (const auto& [start, function] : functions_)
      if (start != start_ && function && exits_.svmas.size() <= kMostExits)
        add(Summary(*function).run());
    exits_.are_own = exits_.svmas.size() == own && exits_.jumps + exits_.unseen == 0 && own > 0;
    exits_.shared = exits_.svmas.size() - own;
    std::sort(exits_.svmas.begin(), exits_.svmas.end());
    if (exits_.svmas.size() > kMostExits)
      return {.svmas = {}, .problem = "it has too many exits"};
    return std::move(exits_);
  }

 private:
  /// Is the address in a section of jumps to other files?
  [[nodiscard]] bool is_stub(std::uint64_t svma) const {
    const auto sections = image_.sections();
    return std::any_of(sections.begin(), sections.end(), [&](const objects::Section& section) {
      return section.covers(svma) && section.name.starts_with(".plt");
    });
  }

  /// Follows the code at `target` and the jumps from there, also to other functions, and to parts
  /// that the compiler moved away.
  void follow(std::uint64_t target) {
    const auto range = ranges_.range_of(target);
    if (!range)
      return;
    const auto known = functions_.find(range->start_svma);
    if (known == functions_.end() && functions_.size() >= kMostFunctions)
      return;
    std::unique_ptr<FunctionCode>& function =
        known != functions_.end() ? known->second : functions_[range->start_svma];
    if (known == functions_.end() && !is_stub(range->start_svma))
      if (auto code = FunctionCode::read(image_, ranges_, *range))
        function = std::make_unique<FunctionCode>(std::move(*code));
    if (!function)
      return;
    if (!function->follow(target)) {
      function.reset();
      return;
    }
    for (const std::uint64_t next : function->take_leaving())
      if (seen_.insert(next).second)
        left_.push_back(next);
  }

  /// Has the code at `target` been followed?
  [[nodiscard]] bool is_followed(std::uint64_t target) const {
    const auto range = ranges_.range_of(target);
    const auto function = range ? functions_.find(range->start_svma) : functions_.end();
    return function != functions_.end() && function->second != nullptr;
  }

  void add(const Code& code) {
    exits_.svmas.insert(exits_.svmas.end(), code.returns.begin(), code.returns.end());
    for (const std::uint64_t jump : code.indirect)
      add_jump(jump);
    for (const Code::Jump& jump : code.leaving) {
      // A Go function starts again once the runtime has given it a larger stack.
      if (jump.target == start_ ? is_go_ : is_followed(jump.target))
        continue;
      if (jump.is_conditional)
        exits_.unseen += jump.target == start_ ? 0 : 1;
      else
        add_jump(jump.svma);
    }
    exits_.unseen += code.unknown + (code.runs_over_end ? 1 : 0);
  }

  void add_jump(std::uint64_t svma) {
    exits_.svmas.push_back(svma);
    ++exits_.jumps;
  }

  const objects::Image& image_;
  const FunctionRanges& ranges_;
  std::uint64_t start_;
  bool is_go_;
  /// By their starts; null: it cannot be followed.
  std::map<std::uint64_t, std::unique_ptr<FunctionCode>> functions_;
  std::vector<std::uint64_t> left_;         ///< targets of jumps that are still to be followed
  std::unordered_set<std::uint64_t> seen_;  ///< all such targets
  FunctionExits exits_;
};

}  // namespace

FunctionExits find_exits(const objects::Image& image, const FunctionRanges& ranges,
                         std::uint64_t svma) {
  if (!image.is_x86_64())
    return {.svmas = {}, .problem = "its instructions are of another architecture"};
  return ExitFinder(image, ranges, svma).find();
}

}  // namespace pe::unwind

namespace pe::recorder {
namespace {

using recording::Probe;
using recording::SpanProbes;

constexpr std::string_view kProbe = "uprobe:";

/// Names the option in a message about a probe.
std::string for_span(const Error& error) {
  constexpr std::string_view kOfEvents = "--event: ";
  std::string text = error.what();
  if (text.starts_with(kOfEvents))
    text.replace(0, kOfEvents.size(), "--span: ");
  return text;
}

SpanProbes follow(const std::string& function, const Probe& entry) {
  const objects::Image& image = entry.file->image();
  const unwind::FunctionRanges ranges(image);
  if (objects::is_go_program(image))
    throw Error(fmt::format(
        "--span: {}: {} is written in Go, whose calls move between threads and stacks, so they "
        "cannot be followed",
        in_quotes(function), entry.file->path()));
  SpanProbes span{.function = function, .entry = entry, .exits = entry};
  span.exits.offsets.clear();
  std::size_t jumps = 0, unseen = 0, shared = 0;
  for (const std::uint64_t offset : entry.offsets) {
    const auto svma = image.svma_of_file_offset(offset);
    const unwind::FunctionExits exits = unwind::find_exits(image, ranges, svma.value_or(0));
    if (!exits.problem.empty())
      throw Error(fmt::format("--span: {}: the end of its calls cannot be seen: {}",
                              in_quotes(function), exits.problem));
    jumps += exits.jumps;
    unseen += exits.unseen;
    shared += exits.shared;
    for (const std::uint64_t exit : exits.svmas)
      if (const auto place = objects::file_offset_of_code(image.segments(), exit))
        span.exits.offsets.push_back(*place);
  }
  std::sort(span.exits.offsets.begin(), span.exits.offsets.end());
  span.exits.offsets.erase(std::unique(span.exits.offsets.begin(), span.exits.offsets.end()),
                           span.exits.offsets.end());
  if (jumps > 0)
    span.exits.note = fmt::format(
        "--span: {}: {} of its {} to code that cannot be followed: a call that takes one seems to "
        "end "
        "at the jump",
        in_quotes(function), jumps,
        span.exits.offsets.size() == 1
            ? "1 exit is a jump"
            : fmt::format("{} exits are jumps", span.exits.offsets.size()));
  else if (unseen > 0)
    span.exits.note = fmt::format(
        "--span: {}: {} in it to code that cannot be followed: a call that takes one seems never "
        "to "
        "return",
        in_quotes(function), unseen == 1 ? "1 way leads" : fmt::format("{} ways lead", unseen));
  else if (shared > 0)
    span.exits.note = fmt::format(
        "--span: {}: it jumps to other functions, so {} of its {} are theirs: every other call to "
        "these functions also costs the time of a probe",
        in_quotes(function), shared, plural(span.exits.offsets.size(), "exit"));
  return span;
}

}  // namespace

std::vector<SpanProbes> resolve_spans(const std::vector<std::string>& functions,
                                      const recording::Target& target,
                                      const std::vector<std::string>& command) {
  recording::Request request;
  for (const std::string& function : functions)
    request.events.push_back(std::string(kProbe) + function);
  try {
    resolve_probes(request, target, command);
  } catch (const UsageError& error) {
    throw UsageError(for_span(error));
  } catch (const Error& error) {
    throw Error(for_span(error));
  }
  std::vector<SpanProbes> spans;
  std::size_t places = 0;
  for (const std::string& event : request.events) {
    spans.push_back(follow(event.substr(kProbe.size()), request.probes.at(event)));
    places += spans.back().entry.offsets.size() + spans.back().exits.offsets.size();
  }
  check_places(places, "--span");
  return spans;
}

}  // namespace pe::recorder
