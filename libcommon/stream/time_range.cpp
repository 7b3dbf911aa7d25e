// SPDX-License-Identifier: MIT
#include "stream/time_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse_number.h"

namespace pe::stream {
namespace {

constexpr std::int64_t kUsPerDay = 24 * 60 * 60 * std::int64_t{kUsPerSecond};

/// A number of exactly as many digits as the text has, up to `most`.
std::optional<unsigned> digits(std::string_view text, std::size_t size, unsigned most) {
  const auto number = text.size() == size ? parse_number<unsigned>(text) : std::nullopt;
  return number && *number <= most ? number : std::nullopt;
}

/// Parses "14:05" and "14:05:30.5" to microseconds since midnight.
std::optional<std::uint64_t> parse_time_of_day(std::string_view text) {
  constexpr std::size_t kShort = 5;  // "14:05"
  constexpr unsigned kMostHour = 23, kMostMinute = 59;
  if (text.size() < kShort || text[2] != ':')
    return std::nullopt;
  const auto hour = digits(text.substr(0, 2), 2, kMostHour);
  const auto minute = digits(text.substr(3, 2), 2, kMostMinute);
  std::uint64_t seconds_us = 0;
  if (text.size() > kShort) {
    const auto seconds = text.substr(kShort + 1);
    const auto whole = digits(seconds.substr(0, seconds.find('.')), 2, kMostMinute);
    const auto parsed = parse_seconds_us(seconds);
    if (text[kShort] != ':' || !whole || !parsed)
      return std::nullopt;
    seconds_us = *parsed;
  }
  constexpr std::uint64_t kMinutes = 60;
  if (!hour || !minute)
    return std::nullopt;
  return (*hour * kMinutes + *minute) * kMinutes * kUsPerSecond + seconds_us;
}

std::tm date_of(std::int64_t seconds, bool is_utc) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm date{};
  if ((is_utc ? ::gmtime_r(&time, &date) : ::localtime_r(&time, &date)) == nullptr)
    return {};
  return date;
}

/// Returns microseconds since 1970 of the time of day `us` on the day of `date`.
std::int64_t moment_of(std::tm date, std::uint64_t us, bool is_utc) {
  constexpr std::uint64_t kHour = 3600, kMinute = 60;
  const std::uint64_t seconds = us / kUsPerSecond;
  date.tm_hour = static_cast<int>(seconds / kHour);
  date.tm_min = static_cast<int>(seconds / kMinute % kMinute);
  date.tm_sec = static_cast<int>(seconds % kMinute);
  date.tm_isdst = -1;  // let the C library look
  const std::time_t time = is_utc ? ::timegm(&date) : ::mktime(&date);
  return std::int64_t{time} * std::int64_t{kUsPerSecond} +
         static_cast<std::int64_t>(us % kUsPerSecond);
}

/// Parses "2026-11-26" to a date whose time is midnight.
std::optional<std::tm> parse_date(std::string_view text) {
  constexpr std::size_t kSize = 10, kMonthAt = 5, kDayAt = 8, kYearSize = 4;
  constexpr unsigned kFirstYear = 1970, kMostYear = 2200, kOfTm = 1900, kMonths = 12, kDays = 31;
  if (text.size() != kSize || text[kMonthAt - 1] != '-' || text[kDayAt - 1] != '-')
    return std::nullopt;
  const auto year = digits(text.substr(0, kYearSize), kYearSize, kMostYear);
  const auto month = digits(text.substr(kMonthAt, 2), 2, kMonths);
  const auto day = digits(text.substr(kDayAt, 2), 2, kDays);
  if (!year || *year < kFirstYear || !month || *month == 0 || !day || *day == 0)
    return std::nullopt;
  std::tm date{};
  date.tm_year = static_cast<int>(*year - kOfTm);
  date.tm_mon = static_cast<int>(*month - 1);
  date.tm_mday = static_cast<int>(*day);
  return date;
}

/// Parses a time of day with or without a day.
std::optional<Moment> parse_wall_time(std::string_view text) {
  Moment moment{.origin = Moment::Origin::kDay, .text = std::string(text)};
  moment.is_utc = text.ends_with('Z');
  if (moment.is_utc)
    text.remove_suffix(1);
  const auto mark = text.find('T');
  const auto us = parse_time_of_day(mark == std::string_view::npos ? text : text.substr(mark + 1));
  if (!us)
    return std::nullopt;
  moment.us = *us;
  if (mark == std::string_view::npos)
    return moment;
  const auto date = parse_date(text.substr(0, mark));
  if (!date)
    return std::nullopt;
  moment.origin = Moment::Origin::kEpoch;
  moment.us =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, moment_of(*date, *us, moment.is_utc)));
  return moment;
}

/// Returns microseconds since 1970 of the moment nearest to `near_us` that has this time of day.
std::int64_t nearest(const Moment& moment, std::int64_t near_us) {
  std::array<std::int64_t, 3> found{};
  for (int day = -1; day <= 1; ++day)
    found.at(static_cast<std::size_t>(day + 1)) =
        moment_of(date_of((near_us + day * kUsPerDay) / std::int64_t{kUsPerSecond}, moment.is_utc),
                  moment.us, moment.is_utc);
  return *std::ranges::min_element(
      found, {}, [near_us](std::int64_t us) { return us > near_us ? us - near_us : near_us - us; });
}

/// Returns the moment on the recording's clock in microseconds.  Throws Error.
std::uint64_t place(const Moment& moment, const RecordingTimes& times) {
  const auto add = [](std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b
               ? std::numeric_limits<std::uint64_t>::max()
               : a + b;
  };
  switch (moment.origin) {
    case Moment::Origin::kClock:
      return moment.us;
    case Moment::Origin::kStart:
      return add(times.first_us, moment.us);
    case Moment::Origin::kEnd:
      return times.last_us - std::min(times.last_us, moment.us);
    case Moment::Origin::kEpoch:
    case Moment::Origin::kDay:
      break;
  }
  const auto first_ns =
      times.clock ? times.clock->wall_of(times.first_us * kNsPerUs) : std::nullopt;
  if (!first_ns)
    throw Error(fmt::format(
        "--time: '{}': the input does not tell when it was recorded: count from its start (+15s)",
        moment.text));
  const auto first_us = static_cast<std::int64_t>(*first_ns / kNsPerUs);
  const std::int64_t wall_us = moment.origin == Moment::Origin::kDay
                                   ? nearest(moment, first_us)
                                   : static_cast<std::int64_t>(moment.us);
  const std::int64_t after_us = wall_us - first_us;
  const auto distance = static_cast<std::uint64_t>(after_us < 0 ? -after_us : after_us);
  return after_us < 0 ? times.first_us - std::min(times.first_us, distance)
                      : add(times.first_us, distance);
}

}  // namespace

std::optional<std::uint64_t> parse_seconds_us(std::string_view text) {
  constexpr std::size_t kDigits = 6;
  const auto point = std::min(text.find('.'), text.size());
  const auto whole = parse_number<std::uint64_t>(text.substr(0, point));
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  if (!whole || fraction.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  fraction.resize(kDigits, '0');
  std::uint64_t us = 0;
  if (__builtin_mul_overflow(*whole, kUsPerSecond, &us) ||
      __builtin_add_overflow(us, parse_number<std::uint64_t>(fraction).value_or(0), &us))
    return std::nullopt;
  return us;
}

std::optional<Moment> parse_moment(std::string_view text) {
  Moment moment{.text = std::string(text)};
  if (text.starts_with('+') || text.starts_with('-')) {
    const auto ns = parse_duration_ns(text.substr(1));
    if (!ns)
      return std::nullopt;
    moment.origin = text.starts_with('+') ? Moment::Origin::kStart : Moment::Origin::kEnd;
    moment.us = *ns / kNsPerUs;
    return moment;
  }
  if (const auto us = parse_seconds_us(text)) {
    moment.us = *us;
    return moment;
  }
  return parse_wall_time(text);
}

bool TimeRange::needs_end() const noexcept {
  const auto is_end = [](const std::optional<Moment>& moment) {
    return moment && moment->origin == Moment::Origin::kEnd;
  };
  return is_end(from) || is_end(to);
}

TimeBounds TimeRange::in(const RecordingTimes& times) const {
  TimeBounds bounds;
  if (from)
    bounds.from_us = place(*from, times);
  if (to)
    bounds.to_us = place(*to, times);
  if (bounds.from_us > bounds.to_us)
    throw Error(fmt::format("--time: ends before it begins: '{},{}'", from ? from->text : "",
                            to ? to->text : ""));
  return bounds;
}

TimeRange parse_time_range(std::string_view text) {
  const auto comma = std::min(text.find(','), text.size());
  TimeRange range;
  const auto read = [text](std::string_view part, std::optional<Moment>& moment) {
    if (part.empty())
      return;
    moment = parse_moment(part);
    if (!moment)
      throw UsageError(fmt::format(
          "--time: not FROM,TO such as 14:05,14:10 or +10s,+20s or -30s or seconds: '{}'", text));
  };
  read(text.substr(0, comma), range.from);
  read(text.substr(std::min(comma + 1, text.size())), range.to);
  if (!range.from && !range.to)
    throw UsageError(fmt::format("--time: neither FROM nor TO: '{}'", text));
  const bool are_alike = range.from && range.to && range.from->origin == range.to->origin &&
                         range.from->is_utc == range.to->is_utc;
  const bool is_from_end = range.from && range.from->origin == Moment::Origin::kEnd;
  if (are_alike && range.from->origin != Moment::Origin::kDay &&
      (is_from_end ? range.from->us < range.to->us : range.from->us > range.to->us))
    throw UsageError(fmt::format("--time: ends before it begins: '{}'", text));
  return range;
}

}  // namespace pe::stream
