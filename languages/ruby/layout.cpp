// SPDX-License-Identifier: MIT
#include "languages/ruby/layout.h"

#include <fmt/format.h>

namespace pe::languages {
namespace {

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

}  // namespace

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

}  // namespace pe::languages
