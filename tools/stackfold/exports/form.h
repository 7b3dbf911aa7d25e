// The forms that stackfold --to writes, in one table that also provides its help.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

struct Form {
  std::string_view name;  ///< the argument of --to
  bool is_binary;
  bool has_times;  ///< shows each sample at its time
  /// Viewers show `first_event` first; empty if events have no names.
  void (*write)(const Profile& profile, const std::string& first_event, Output& out);
};

/// Returns all forms.
std::span<const Form> forms();

}  // namespace pe::fold::exports
