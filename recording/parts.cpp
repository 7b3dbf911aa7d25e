// SPDX-License-Identifier: MIT
#include "recording/parts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "recording/built_parts.h"

namespace pe::recording {
namespace {

struct Row {
  bool is_built;
  std::string_view what, option;
};

constexpr std::string_view kInprocessOption = "-Dinprocess=disabled";

/// In the order of Part.
constexpr std::array kParts = {
    Row{built::kHasBpf, "engine bpf", built::kBpfOption},
    Row{built::kHasPtrace, "engine ptrace", "-Dptrace=disabled"},
    Row{built::kHasInprocess, "engine signal", kInprocessOption},
    Row{built::kHasInprocess, "library for traced programs", kInprocessOption},
    Row{built::kHasProbes, "probes", "-Dprobes=disabled"},
};

}  // namespace

std::string why_left_out(Part part) {
  const Row& row = kParts[static_cast<std::size_t>(part)];
  return row.is_built ? "" : fmt::format("this build has no {} ({})", row.what, row.option);
}

void require(Part part) {
  if (const std::string why = why_left_out(part); !why.empty())
    throw UsageError(why);
}

std::vector<LeftOut> left_out() {
  std::vector<LeftOut> all;
  for (const Row& row : kParts)
    if (!row.is_built)
      all.push_back({std::string(row.what), std::string(row.option)});
  if (!built::kLanguages.empty())
    all.push_back({std::string(built::kLanguages), "-Dlanguages"});
  return all;
}

}  // namespace pe::recording
