// An output that keeps everything that is written.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "base/io/output.h"

namespace pe {

/// Keeps everything.
class StringOutput final : public Output {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  void flush() override {}
  std::string text;
};

}  // namespace pe
