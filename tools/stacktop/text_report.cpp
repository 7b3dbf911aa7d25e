// SPDX-License-Identifier: MIT
#include "stacktop/text_report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"

namespace pe::stacktop {
namespace {

constexpr std::size_t kUsualColumns = 80;

std::size_t columns_of_terminal(int fd) {
  struct winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

/// Checks the first non-empty variable of those that set LC_CTYPE.
bool has_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || value[0] == '\0')
      continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

/// True if NO_COLOR is present and not empty (https://no-color.org).
bool is_color_unwanted() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && value[0] != '\0';
}

}  // namespace

Look look_of(const Output& out, const Options& options) {
  Look look;
  if (out.is_terminal()) {
    look.has_bars = true;
    look.is_utf8 = has_utf8_locale();
    look.columns = columns_of_terminal(out.fd());
  }
  if (options.columns)
    look.columns = options.columns;
  const When color = options.color;
  look.has_color =
      color == When::kAlways || (color == When::kAuto && out.is_terminal() && !is_color_unwanted());
  return look;
}

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Returns the index of the byte at which column `column` starts.
std::size_t byte_of_column(std::string_view text, std::size_t column) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!is_continuation(text[at]) && column-- == 0)
      break;
  return at;
}

}  // namespace

std::string shown(std::string_view name) {
  if (name.empty())
    return "[no name]";
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const CodePoint c = take_code_point(name);
    if (c.is_valid && !is_control(c.value) && !is_deceiving(c.value))
      out += c.bytes;
    else
      for (const char byte : c.bytes)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string shortened(std::string_view text, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  const std::size_t size = columns_of(text);
  if (size <= columns)
    return std::string(text);
  if (columns <= kCut.size())
    return std::string(kCut.substr(0, columns));
  const std::size_t kept = columns - kCut.size();
  const std::size_t front = (kept + 1) / 2;
  std::string out(text.substr(0, byte_of_column(text, front)));
  out += kCut;
  out += text.substr(byte_of_column(text, size - (kept - front)));
  return out;
}

namespace {

using painting::Count;

constexpr std::size_t kBarColumns = 10;
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kYellow = "\033[33m";
constexpr std::string_view kPlain = "\033[0m";

std::string percent_text(Count part, Count all) {
  return fmt::format("{:.2f}%", percent_of(part, all));
}

/// Draws `share` of the columns, to an eighth of a column if `is_utf8`, and fills the rest with
/// blanks.
std::string bar(double share, bool is_utf8) {
  constexpr std::string_view kEighths[] = {"",       "\u258F", "\u258E", "\u258D",
                                           "\u258C", "\u258B", "\u258A", "\u2589"};
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarColumns * 8));
  std::size_t columns = eighths / 8;
  std::string out;
  for (std::size_t i = 0; i < columns; ++i)
    out += is_utf8 ? "\u2588" : "#";
  if (is_utf8 && eighths % 8 != 0) {
    out += kEighths[eighths % 8];
    ++columns;
  }
  return out + std::string(kBarColumns - columns, ' ');
}

class TextWriter {
 public:
  TextWriter(const Report& report, const Look& look, Output& out)
      : report_(report), look_(look), out_(out) {}

  void write() {
    measure();
    write_functions();
    write_heading();
    for (std::size_t i = 0; i < report_.lines.size(); ++i) {
      if (report_.is_hierarchy && i > 0 && report_.lines[i].depth == 0)
        put("\n");
      write_line(report_.lines[i]);
    }
    write_left_out();
    write_deeper();
    if (report_.hints != nullptr)
      write_hints();
  }

 private:
  void put(std::string_view text) { out_.write(text); }

  std::string colored(std::string_view color, const std::string& text) const {
    return look_.has_color && !color.empty() ? fmt::format("{}{}{}", color, text, kPlain) : text;
  }

  void measure() {
    for (const Line& line : report_.lines) {
      self_columns_ = std::max(self_columns_, folded::to_text(line.sums.self).size());
      total_columns_ = std::max(total_columns_, folded::to_text(line.sums.total).size());
    }
  }

  /// Writes the functions whose callers or callees follow.
  void write_functions() {
    if (report_.functions.empty())
      return;
    constexpr std::size_t kShown = 5;
    std::string names;
    for (std::size_t i = 0; i < std::min(kShown, report_.functions.size()); ++i)
      names += fmt::format("{}{}", i == 0 ? "" : ", ", shown(report_.functions[i]));
    if (report_.functions.size() > kShown)
      names += fmt::format(" and {} more", report_.functions.size() - kShown);
    const Sums& sums = report_.of_functions;
    put(fmt::format("{} of {}\ntotal {} ({}), self {} ({})\n\n", report_.view, names,
                    folded::to_text(sums.total), percent_text(sums.total, report_.all),
                    folded::to_text(sums.self), percent_text(sums.self, report_.all)));
  }

  void write_heading() {
    std::string text;
    if (report_.has_self)
      text += fmt::format("{:>7} {:>{}} ", "self %", "self", self_columns_);
    text += fmt::format("{:>7} {:>{}}  ", "total %", "total", total_columns_);
    if (report_.has_waits)
      text += fmt::format("{:>{}} {:>{}}  ", "on CPU", part_columns(), "waiting", part_columns());
    if (look_.has_bars)
      text += std::string(kBarColumns + 1, ' ');
    text += report_.heading;
    put(fmt::format("{}\n", colored(kBold, text)));
  }

  /// The width of the columns of a total's parts.
  [[nodiscard]] std::size_t part_columns() const {
    return std::max(total_columns_, std::string_view("waiting").size());
  }

  [[nodiscard]] std::string_view color_of(double percent) const {
    constexpr double kHot = 10;
    constexpr double kWarm = 2;
    if (percent >= kHot)
      return kRed;
    return percent >= kWarm ? kYellow : "";
  }

  [[nodiscard]] std::string percent_column(Count count, bool is_sorted_by) const {
    const std::string text = fmt::format("{:>7}", percent_text(count, report_.all));
    return is_sorted_by ? colored(color_of(percent_of(count, report_.all)), text) : text;
  }

  void write_line(const Line& line) {
    std::string text;
    std::size_t columns = 7 + 1 + total_columns_ + 2;
    if (report_.has_self) {
      text += fmt::format("{} {:>{}} ", percent_column(line.sums.self, !report_.is_sorted_by_total),
                          folded::to_text(line.sums.self), self_columns_);
      columns += 7 + 1 + self_columns_ + 1;
    }
    text += fmt::format("{} {:>{}}  ", percent_column(line.sums.total, report_.is_sorted_by_total),
                        folded::to_text(line.sums.total), total_columns_);
    if (report_.has_waits) {
      text += fmt::format("{:>{}} {:>{}}  ", folded::to_text(on_cpu(line.sums)), part_columns(),
                          folded::to_text(line.sums.waiting), part_columns());
      columns += 2 * part_columns() + 3;
    }
    if (look_.has_bars) {
      const Count count = report_.is_sorted_by_total ? line.sums.total : line.sums.self;
      text += bar(percent_of(count, report_.all) / 100, look_.is_utf8);
      text += ' ';
      columns += kBarColumns + 1;
    }
    text += line.branch;
    text += fitting(shown(line.name), columns + line.branch.size());
    text += '\n';
    put(text);
  }

  /// Shortens `name` to fit the line after `before` columns.
  [[nodiscard]] std::string fitting(const std::string& name, std::size_t before) const {
    constexpr std::size_t kLeast = 12;  // a shorter name is useless; a second line is better
    if (!look_.columns)
      return name;
    return shortened(name, std::max(kLeast, *look_.columns - std::min(*look_.columns, before)));
  }

  void write_left_out() {
    if (report_.left_out == 0 || report_.is_hierarchy)
      return;
    put(colored(kDim, fmt::format("({} more {}{}: {} {})", report_.left_out, report_.heading,
                                  report_.left_out == 1 ? "" : "s",
                                  percent_text(report_.left_out_count, report_.all),
                                  report_.has_self ? "self" : "in total")) +
        "\n");
  }

  void write_deeper() {
    if (report_.deeper > 0)
      put(colored(kDim, fmt::format("({} below the maximum depth: --max-depth)",
                                    report_.deeper == 1
                                        ? "1 branch continues"
                                        : fmt::format("{} branches continue", report_.deeper))) +
          "\n");
  }

  void write_hints() {
    std::vector<std::size_t> order;  // by their first functions
    for (const Line& line : report_.lines)
      if (line.hint && std::find(order.begin(), order.end(), *line.hint) == order.end())
        order.push_back(*line.hint);
    if (order.empty()) {
      put("\nThere are no hints for these functions.\n");
      return;
    }
    put(fmt::format(
        "\n{}\n",
        colored(kBold, "Hints, based on the functions' names alone. Measure before and after.")));
    for (const std::size_t hint : order)
      write_hint(hint);
  }

  void write_hint(std::size_t hint) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string_view> names;
    for (const Line& line : report_.lines)
      if (line.hint == hint && std::find(names.begin(), names.end(), line.name) == names.end())
        names.push_back(line.name);
    std::string text;
    for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ", shortened(shown(names[i]), 40));
    if (names.size() > kShown)
      text += fmt::format(" and {} more", names.size() - kShown);
    put(fmt::format("  {}\n", text));
    write_wrapped(shown((*report_.hints)[hint].text));
  }

  void write_wrapped(std::string_view text) {
    constexpr std::string_view kIndent = "      ";
    constexpr std::size_t kColumns = 80;
    const std::size_t columns = std::min(kColumns, look_.columns.value_or(kColumns));
    std::string line;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      if (!line.empty() && kIndent.size() + columns_of(line) + 1 + columns_of(word) > columns) {
        put(fmt::format("{}{}\n", kIndent, line));
        line.clear();
      }
      line += line.empty() ? "" : " ";
      line += word;
      text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    put(fmt::format("{}{}\n", kIndent, line));
  }

  const Report& report_;
  const Look& look_;
  Output& out_;
  std::size_t self_columns_ = 4, total_columns_ = 5;  // at least as wide as their headings
};

}  // namespace

void write_text(const Report& report, const Look& look, Output& out) {
  TextWriter(report, look, out).write();
}

}  // namespace pe::stacktop
