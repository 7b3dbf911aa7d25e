// SPDX-License-Identifier: MIT
#include "recording/probes/probe_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "recording/probes/function_code.h"

namespace pe::unwind {
namespace {

using Range = FunctionRanges::Range;

constexpr std::string_view kUnknown =
    "it is unknown whether an instruction starts there, and a probe on data or inside an "
    "instruction would damage the program: name the start of a function";

/// Adds the code that other functions reach in a part which the compiler has moved away: nothing
/// but their jumps leads there.  Returns false if that is wrong, or takes more than `left_ns`.
bool follow_from_others(const objects::Image& image, const FunctionRanges& ranges,
                        const Range& part, FunctionCode& code, std::uint64_t* left_ns) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26U;  // libLLVM has 40 MB; 0.5 s
  std::uint64_t bytes = 0;
  bool is_right = true;
  std::uint64_t now_ns = own_cpu_ns();
  const auto may_go_on = [&] {
    const std::uint64_t before_ns = std::exchange(now_ns, own_cpu_ns());
    if (left_ns != nullptr)
      *left_ns -= std::min(*left_ns, now_ns - before_ns);
    is_right = is_right && (left_ns == nullptr || *left_ns > 0);
    return is_right;
  };
  ranges.for_each([&](const Range& other) {
    bytes += other.end_svma - other.start_svma;
    if (bytes > kMostBytes || other.start_svma == part.start_svma || !may_go_on())
      return;
    const auto decoded = DecodedCode::read(image, other.start_svma, other.end_svma);
    const auto leads_there = [&part](const DecodedCode::Step& step) {
      const bool jumps =
          step.flow == Instruction::Flow::kJump || step.flow == Instruction::Flow::kBranch;
      return jumps && part.covers(step.target);
    };
    if (!decoded || std::none_of(decoded->steps().begin(), decoded->steps().end(), leads_there))
      return;
    auto from = FunctionCode::read(image, ranges, other);
    if (from && from->follow(other.start_svma))
      for (const std::uint64_t target : from->take_leaving())
        is_right = is_right && (!part.covers(target) || code.follow(target));
  });
  return is_right;
}

std::string problem_inside(const objects::Image& image, const FunctionRanges& ranges,
                           const Range& function, std::uint64_t svma, std::uint64_t* left_ns) {
  auto code = FunctionCode::read(image, ranges, function);
  if (!code || !code->follow(function.start_svma))
    return std::string(kUnknown);
  const auto number = code->code().number_at(svma);
  if (!number || (!code->is_reached(*number) &&
                  (!follow_from_others(image, ranges, function, *code, left_ns) ||
                   !code->is_reached(*number))))
    return std::string(kUnknown);
  const std::uint64_t start = code->code().steps()[*number].svma;
  return start == svma ? std::string()
                       : fmt::format(
                             "this is inside the instruction at {:#x}, {} bytes earlier: a probe "
                             "there would damage the program",
                             start, svma - start);
}

}  // namespace

std::string problem_of_place(const objects::Image& image, const FunctionRanges& ranges,
                             const std::optional<Range>& symbol, std::uint64_t svma,
                             std::uint64_t* left_ns) {
  const auto stated = ranges.range_of(svma);
  const auto& function = stated ? stated : symbol;
  if (!function || !function->covers(svma))
    return std::string(kUnknown);
  if (function->start_svma != svma)
    return problem_inside(image, ranges, *function, svma, left_ns);
  const auto before = ranges.range_of(svma - 1);
  return before && before->covers(svma) ? "according to the unwind information, one function "
                                          "starts there while another continues"
                                        : std::string();
}

}  // namespace pe::unwind
