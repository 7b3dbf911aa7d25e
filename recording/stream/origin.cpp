// SPDX-License-Identifier: MIT
#include "recording/stream/origin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/characters.h"
#include "base/cli/version.h"
#include "base/clock.h"
#include "base/fd.h"
#include "stream/records/record.h"

namespace pe::recording {
namespace {

/// Appends a text as perf writes it: its length, which includes a NUL, and its bytes.
void append_text(std::string& data, std::string_view text) {
  data += bytes_of(static_cast<std::uint32_t>(text.size() + 1));
  data.append(text).push_back('\0');
}

std::string text_data(std::string_view text) {
  std::string data;
  append_text(data, text);
  return data;
}

/// Returns the words of this program's command line, each with a NUL; empty if unknown.
std::string own_command_line() {
  constexpr std::size_t kMostBytes = 32UL * 1024;
  const Fd file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string words(kMostBytes, '\0');
  const ssize_t bytes = file ? ::read(file.get(), words.data(), words.size()) : 0;
  words.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  words.resize(words.rfind('\0') + 1);  // a word that was cut goes
  return words;
}

std::string command_line_data() {
  const std::string words = own_command_line();
  std::string texts;
  std::uint32_t count = 0;
  for (std::string_view left = words; const auto word = take_until(left, '\0'); ++count)
    append_text(texts, *word);
  return count == 0 ? std::string() : std::string(bytes_of(count)) + texts;
}

/// perf: version, clock, and the two times.
std::string clock_data() {
  constexpr std::uint32_t kVersion = 1;
  constexpr std::uint32_t kClock = CLOCK_MONOTONIC;
  std::string data(bytes_of(kVersion));
  data += bytes_of(kClock);
  data += bytes_of(clock_ns(CLOCK_REALTIME));
  data += bytes_of(monotonic_ns());
  return data;
}

}  // namespace

void write_origin(stream::StreamWriter& writer, std::string_view engine) {
  utsname system{};
  if (::uname(&system) == 0)
    writer.write_feature(stream::kFeatureHostName, text_data(system.nodename));
  writer.write_feature(
      stream::kFeatureVersion,
      text_data(fmt::format("stackpipe {}{}{}{}{}", version_text(), stream::kStreamMark,
                            stream::kStreamVersion, stream::kEngineMark, engine)));
  if (const std::string data = command_line_data(); !data.empty())
    writer.write_feature(stream::kFeatureCommandLine, data);
  writer.write_feature(stream::kFeatureClockData, clock_data());
}

}  // namespace pe::recording
