// Reads an instruction sequence of CRuby: the function's name, its file and its lines.
//
// Sources: CRuby, vm_core.h (rb_iseq_constant_body), include/ruby/internal/core/rstring.h and
// rarray.h; iseq.c for the positions of lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "languages/common/frame.h"
#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/registry.h"
#include "languages/ruby/layout.h"
#include "languages/ruby/walk.h"

namespace pe::languages {

/// Reads a String as UTF-8, at most `most` bytes of it.  nullopt if it is unreadable, or something
/// else.  U+FFFD replaces each byte that is not valid.
std::optional<std::string> read_ruby_text(Memory& memory, const RubyLayout& layout,
                                          std::uint64_t text, std::size_t most);

/// Reads the path of an instruction sequence: a String, or an Array that starts with it.
std::optional<std::string> read_ruby_path(Memory& memory, const RubyLayout& layout,
                                          std::uint64_t path, std::size_t most);

/// Returns the positions (in words of instructions) at which a line starts, in ascending order.
/// `table` is a succ_index_table, which has for each position the number of starts up to there;
/// `size` is the size of the instructions in words, and `count` the number of starts.
std::vector<std::uint32_t> ruby_line_starts(Bytes table, std::uint32_t size, std::uint32_t count);

/// Returns the lines of an instruction sequence: the places are bytes from its first instruction
/// on, and a frame's place is that of its next instruction.  `starts` are those of `lines`, and
/// `size` is the size of the instructions in words.
LineTable ruby_lines(std::span<const std::uint32_t> starts, std::span<const std::uint32_t> lines,
                     std::uint32_t size);
/// Reads the lines of an instruction sequence; none if they are unreadable.
LineTable read_ruby_lines(Memory& memory, const RubyLayout& layout, std::uint64_t body,
                          const RubyCodeFields& fields);

/// See Interpreter::read_code.
std::optional<ScriptCode> read_ruby_code(Memory& memory, const ScriptLayout& layout,
                                         const ScriptFrame& frame);

}  // namespace pe::languages
