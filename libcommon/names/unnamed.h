// Why a frame has no name: a value, to be counted and told.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "names/module_symbols.h"

namespace pe::names {

enum class Unnamed : std::uint8_t {
  kNone,          ///< it has one
  kNotMapped,     ///< nothing was mapped at the address
  kNoMap,         ///< code made at run time, and no perf map or jitdump that we may read
  kNotInMap,      ///< one of these, but no entry
  kNotWritten,    ///< a jitdump that is not written to its end
  kKernelHidden,  ///< /proc/kallsyms is restricted or missing
  kOtherKernel,   ///< recorded under a kernel that is not running here
  kNotInKernel,   ///< no kernel symbol covers it
  kFileMissing,
  kBuildIdDiffers,  ///< the file has been replaced since the recording
  kFileDenied,
  kFileUnusable,  ///< not ELF, damaged, not a regular file
  kStripped,      ///< no symbols, or only those that it exports
  kNotCovered,    ///< symbols, but none here
};
inline constexpr std::size_t kUnnamedReasons = 14;

/// "stripped of symbols", for the closing line.
const char* describe(Unnamed reason);

Unnamed reason_of(NoName why);

using ByReason = std::array<std::uint64_t, kUnnamedReasons>;

/// Frames, and those without a name by reason and by module.
class FrameCounts {
 public:
  /// The number under which frames of a module are counted.
  std::uint32_t module_number(const std::string& module) {
    const auto [item, is_new] =
        numbers_.try_emplace(module, static_cast<std::uint32_t>(modules_.size()));
    if (is_new)
      modules_.push_back({.name = &item->first});
    return item->second;
  }
  /// The frames that are counted from now on are of another sample.
  void begin_sample() { ++samples_; }
  void count(Unnamed reason, std::uint32_t module) {
    ++frames_;
    const auto index = static_cast<std::size_t>(reason);
    ++by_reason_[index];
    Module& of = modules_[module];
    ++of.by_reason[index];
    if ((reason == Unnamed::kStripped || reason == Unnamed::kNotWritten) &&
        of.last_hidden != samples_) {
      of.last_hidden = samples_;
      ++of.hidden_samples;
    }
  }

  /// How many frames of a module have no name for one reason.
  struct Row {
    std::string_view module;
    Unnamed reason;
    std::uint64_t frames;
  };
  /// The largest first.
  [[nodiscard]] std::vector<Row> rows() const;

  /// A module, and how many samples have frames of it without a name.
  struct Hiding {
    std::string_view module;
    std::uint64_t samples;
  };
  /// The stripped files, or the jitdumps not written to their end, the largest first.
  [[nodiscard]] std::vector<Hiding> hiding(Unnamed reason) const;
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  [[nodiscard]] const ByReason& by_reason() const noexcept { return by_reason_; }
  [[nodiscard]] std::uint64_t unnamed() const noexcept { return frames_ - by_reason_[0]; }

 private:
  struct Module {
    const std::string* name;  ///< in numbers_, whose nodes do not move
    ByReason by_reason = {};
    std::uint64_t hidden_samples = 0;  ///< with a frame that has no name for one of hiding()
    std::uint64_t last_hidden = 0;     ///< the last of them
  };
  std::uint64_t frames_ = 0, samples_ = 0;
  ByReason by_reason_{};
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Module> modules_;
};

/// "120 of 4000 frames without a name (3.0 %): 100 stripped of symbols, 20 not mapped"; empty if
/// all have one.
std::string describe(const FrameCounts& counts);

/// A line for each of the stripped files that hide most names: its share of the samples, and how to
/// get them.  `has_servers`: debuginfod servers have been asked.  `is_go`: whether Go has built it.
std::vector<std::string> describe_stripped(const FrameCounts& counts, bool has_servers,
                                           const std::function<bool(std::string_view)>& is_go);

/// A line for the jitdumps that are not written to their end; empty if that hides few names.
std::string describe_unwritten(const FrameCounts& counts);

/// The lines of a table: frames, their share of all, module, reason.
std::vector<std::string> table(const FrameCounts& counts);

}  // namespace pe::names
