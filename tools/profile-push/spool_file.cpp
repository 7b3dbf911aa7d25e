// SPDX-License-Identifier: MIT
#include "profile-push/spool_file.h"

#include <fmt/format.h>

#include "base/parse_number.h"
#include "base/take_until.h"

namespace pe::push {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kTimeDigits = 13;
constexpr std::string_view kSuffix = ".pprof.gz";

/// ID1 ID2 CM FLG MTIME XFL OS (RFC 1952, 2.3): deflate, FCOMMENT, no time, OS unknown.
constexpr std::string_view kMember = "\x1f\x8b\x08\x10\0\0\0\0\0\xff"sv;
/// The end of the comment, an empty block of deflate, CRC32 and ISIZE of nothing.
constexpr std::string_view kMemberEnd = "\0\x03\0\0\0\0\0\0\0\0\0"sv;
constexpr std::string_view kForm = "stackpipe-push 1 ";

std::optional<std::uint64_t> take_time(std::string_view& text) {
  const auto digits = take_until(text, '-');
  if (!digits || digits->size() != kTimeDigits)
    return std::nullopt;
  return parse_number<std::uint64_t>(*digits);
}

bool cut_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string SpoolName::text() const {
  return fmt::format("{:0{}}-{:0{}}-{}{}", times.from_ms, kTimeDigits, times.until_ms, kTimeDigits,
                     number, kSuffix);
}

std::optional<SpoolName> parse_spool_name(std::string_view name) {
  const std::string_view whole = name;
  if (!name.ends_with(kSuffix))
    return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const auto from = take_time(name);
  const auto until = from ? take_time(name) : std::nullopt;
  const auto number = parse_number<std::uint32_t>(name);
  if (!until || !number || *until < *from)
    return std::nullopt;
  const SpoolName result{.times = {.from_ms = *from, .until_ms = *until}, .number = *number};
  return result.text() == whole ? std::optional(result) : std::nullopt;
}

std::string spool_content(const SpooledProfile& profile) {
  return fmt::format("{}{}{} {}{}{}", kMember, kForm, profile.rate_hz, profile.series, kMemberEnd,
                     profile.pprof);
}

std::optional<SpooledProfile> parse_spool_content(std::string_view content) {
  if (!cut_prefix(content, kMember) || !cut_prefix(content, kForm))
    return std::nullopt;
  const auto rate_hz = take_until(content, ' ');
  const auto rate = rate_hz ? parse_number<std::uint32_t>(*rate_hz) : std::nullopt;
  const std::size_t end = content.find('\0');
  if (!rate || end == std::string_view::npos)
    return std::nullopt;
  const std::string_view series = content.substr(0, end);
  content.remove_prefix(end);
  if (series.empty() || !cut_prefix(content, kMemberEnd))
    return std::nullopt;
  return SpooledProfile{.series = series, .rate_hz = *rate, .pprof = content};
}

}  // namespace pe::push
