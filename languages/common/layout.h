// Where an interpreter keeps its threads, frames and functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "languages/php/layout.h"
#include "languages/python/layout.h"
#include "languages/ruby/layout.h"

namespace pe::languages {

enum class ScriptLanguage : std::uint32_t { kPython, kPhp, kRuby };

/// Only the member of its language is valid.
struct ScriptLayout {
  ScriptLanguage language = ScriptLanguage::kPython;
  PythonLayout python = {};
  PhpLayout php = {};
  RubyLayout ruby = {};
};

}  // namespace pe::languages
