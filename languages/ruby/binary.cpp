// Recognises CRuby by its file, and the layout of its version.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "languages/common/interpreter.h"
#include "languages/registry.h"
#include "languages/ruby/layout.h"
#include "languages/ruby/names.h"
#include "objects/image.h"

namespace pe::languages {
namespace {

/// The VM has 202 to 220 instructions in these versions.  Onigmo, its other loop, has 98.
constexpr std::size_t kLeastInstructions = 150;

constexpr RubyLayout kRuby30{.next_ractor = 568,
                             .threads = 304,
                             .context = 40,
                             .native_thread = 0,
                             .thread_id = 80,
                             .thread = 56,
                             .previous = 440,
                             .frame_bytes = 56,
                             .lines = 120,
                             .line_bytes = 8,
                             .has_tagged_line = true,
                             .has_length = false};

constexpr RubyLayout kRuby31{.next_ractor = 568,
                             .threads = 304,
                             .context = 40,
                             .native_thread = 0,
                             .thread_id = 80,
                             .thread = 48,
                             .previous = 432,
                             .frame_bytes = 64,
                             .lines = 120,
                             .line_bytes = 12,
                             .has_tagged_line = true,
                             .has_length = false};

constexpr RubyLayout kRuby32{.next_ractor = 568,
                             .threads = 304,
                             .context = 48,
                             .native_thread = 40,
                             .thread_id = 8,
                             .thread = 48,
                             .previous = 440,
                             .frame_bytes = 64,
                             .lines = 112,
                             .line_bytes = 12,
                             .has_tagged_line = false,
                             .has_length = true};

constexpr RubyLayout kRuby33{.next_ractor = 432,
                             .threads = 256,
                             .context = 48,
                             .native_thread = 40,
                             .thread_id = 16,
                             .thread = 48,
                             .previous = 440,
                             .frame_bytes = 56,
                             .lines = 112,
                             .line_bytes = 12,
                             .has_tagged_line = false,
                             .has_length = true};

constexpr RubyLayout kRuby34{.next_ractor = 432,
                             .threads = 256,
                             .context = 48,
                             .native_thread = 40,
                             .thread_id = 16,
                             .thread = 48,
                             .previous = 424,
                             .frame_bytes = 56,
                             .lines = 112,
                             .line_bytes = 12,
                             .has_tagged_line = false,
                             .has_length = true};

/// Returns the layout of a version, or its name, "Ruby 2.7", if that is unknown.
std::variant<RubyLayout, std::string> ruby_layout(std::uint64_t version) {
  switch (version) {
    case ruby_version(3, 0):
      return kRuby30;
    case ruby_version(3, 1):
      return kRuby31;
    case ruby_version(3, 2):
      return kRuby32;
    case ruby_version(3, 3):
      return kRuby33;
    case ruby_version(3, 4):
      return kRuby34;
    default:
      return fmt::format("Ruby {}.{}", version >> 32U, version & 0xffff'ffff);
  }
}

bool is_data(const objects::Image& image, std::uint64_t svma) {
  return std::ranges::any_of(image.segments(), [svma](const objects::Segment& segment) {
    return !segment.executable && svma >= segment.svma &&
           svma - segment.svma < segment.memory_bytes;
  });
}

/// Needs the svma of ruby_api_version, ruby_current_vm_ptr and ruby_vm_at_exit; one of the last two
/// suffices.  ruby_vm_at_exit() loads ruby_current_vm_ptr, which often has no symbol.
bool complete_ruby(const objects::Image& image, std::span<const std::uint64_t> symbols,
                   ScriptBinary& binary) {
  constexpr std::uint64_t kBytesOfUser = 64;
  const std::uint64_t version = symbols[0], vm = symbols[1], user_of_vm = symbols[2];
  binary.runtime = vm;
  if (vm == 0 && user_of_vm != 0)
    if (const auto code = image.loaded_bytes(user_of_vm, kBytesOfUser))
      binary.runtime = first_loaded_pointer(code->bytes, user_of_vm).value_or(0);
  const auto numbers = loaded_memory(image).value<std::array<std::uint32_t, 2>>(version);
  if (version == 0 || !numbers || !is_data(image, binary.runtime))
    return false;
  binary.version = ruby_version((*numbers)[0], (*numbers)[1]);
  return true;
}

std::variant<ScriptLayout, std::string> layout_of_ruby(Memory& /*memory*/,
                                                       const ScriptBinary& binary,
                                                       std::uint64_t /*bias*/) {
  auto layout = ruby_layout(binary.version);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = kScriptRuby, .ruby = std::get<RubyLayout>(layout)};
}

}  // namespace

const Interpreter kRubyInterpreter{
    .number = kScriptRuby,
    .language = &kRuby,
    .kind = stream::ScriptKind::kRuby,
    .loop = "vm_exec_core",
    .loop_addresses = kLeastInstructions,
    .symbols = {"ruby_api_version", "ruby_current_vm_ptr", "ruby_vm_at_exit"},
    .complete = complete_ruby,
    .layout = layout_of_ruby,
    .read_code = read_ruby_code,
};

}  // namespace pe::languages
