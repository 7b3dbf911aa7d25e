// The weight of a sample: a field of its tracepoint, an argument of its probe, or a returned value.
//
// Arguments of static probes are operands of the assembler: "8@%rdi" is a register, "-4@16(%rbp)"
// memory, "8@$5" a constant.  The number is the size in bytes; it is negative if the value is
// signed (systemtap's wiki, UserSpaceProbeImplementation, "Argument Format").  Only x86-64's are
// read.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/bpf/hit_weight.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/probed_image.h"
#include "stream/records/sample.h"

namespace pe::recording {

/// Where a value is.
struct Weight {
  enum class Kind : std::uint8_t { kField, kRegister, kMemory, kConstant };
  Kind kind = Kind::kConstant;
  unsigned bytes = 8;  ///< 1, 2, 4 or 8
  bool is_signed = false;
  unsigned reg = 0;         ///< DWARF number; of kRegister, and of kMemory the base
  std::int64_t offset = 0;  ///< in the data of kField, from the base of kMemory; or the constant
  /// It may be an int, which fills only the lower half of its register.
  bool may_be_int = false;
};

/// The weight of an event's samples, and its unit.
struct EventWeight {
  Weight weight;
  std::string unit;
};

/// Parses an argument of a static probe; nullopt if it is malformed, or of a kind that is not
/// known (an index register, a symbol).
std::optional<Weight> parse_argument(std::string_view operand);
/// Returns the argument with that number, from 0 on, of a list such as "8@%rdi -4@$5".  Spaces in
/// an operand do not end it.
std::optional<Weight> argument_of_static_probe(std::string_view arguments, unsigned number);
/// Returns an integer argument of a function, 0 to 5 (System V ABI); nullopt for other numbers.
std::optional<Weight> argument_of_function(unsigned number);
/// Returns what a function returns in a register.
Weight returned_value();
/// Returns the number of "arg3"; nullopt for other names.
std::optional<unsigned> argument_number(std::string_view name);

/// Returns the value in a sample that has its registers, stack and data; nullopt if the sample does
/// not contain it.
std::optional<std::int64_t> value_in(const stream::Sample& sample, std::uint64_t regs_mask,
                                     const Weight& weight);
/// Returns how the kernel's program finds the value; nullopt if it cannot.
std::optional<unwind::HitWeight> weight_of_hit(const Weight& weight);

/// Returns where a sample's record has a field of eight bytes, in bytes.
std::size_t place_in_sample(const perf_event_attr& attr, perf_event_sample_format field) noexcept;

/// Replaces the period of samples by their weight.
class Weigher {
 public:
  /// `weights` are by the id of the event's counters; `attr` is the layout of the samples.
  Weigher(std::map<std::uint64_t, Weight> weights, const perf_event_attr& attr);
  /// From now on the period of a sample is already the value.  It may be negative.
  void trust_periods() noexcept { periods_are_values_ = true; }

  /// Returns the sample's new period; nullopt if its event has no weight.
  std::optional<std::uint64_t> weigh(const stream::Record& record, const stream::Sample& sample);

  /// Samples that count 0 because their value was negative, such as an error.  Of a value that may
  /// be an int, -1 to -4095 are: the numbers of errors (errno(3)).
  [[nodiscard]] std::uint64_t negative() const noexcept { return negative_; }
  /// Samples that count 0 because they do not contain the value.
  [[nodiscard]] std::uint64_t unknown() const noexcept { return unknown_; }

 private:
  std::map<std::uint64_t, Weight> weights_;
  std::uint64_t regs_mask_;
  bool periods_are_values_ = false;
  std::uint64_t negative_ = 0, unknown_ = 0;
};

// A probe that the kernel can open: the places of a ProbeName.

struct Probe {
  ProbeKind kind = ProbeKind::kUprobe;
  /// The path by which the kernel finds `file`; of the kernel's probes: the function.
  std::string target = {};
  std::shared_ptr<const ProbedImage> file = {};  ///< null: of the kernel
  /// In the file; of kUretprobe: the function's returns; of the kernel's probes: in the function.
  /// At least one: a name may be that of several functions.
  std::vector<std::uint64_t> offsets = {};
  /// The file's place of a counter that the kernel raises while the probe exists: a program that
  /// checks it passes a static probe only then.  0: none.
  std::uint64_t semaphore_offset = 0;
  std::string arguments = {};  ///< of a static probe: "8@%rdi -4@$5", untrusted
  std::string note = {};       ///< a line for the user: what differs from the kind's other probes

  [[nodiscard]] bool is_of_kernel() const noexcept {
    return kind == ProbeKind::kKprobe || kind == ProbeKind::kKretprobe;
  }
};

}  // namespace pe::recording
