// Writes JSON (RFC 8259) to an output while it is made.
//
// rapidjson::Writer implements the grammar.  This module adds three rules: texts may have any
// bytes, DEL is escaped because it affects a terminal, and the caller chooses where lines end.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/io/output.h"
#include "base/utf8.h"

// RapidJSON 1.1 adds the size of an item to the null pointer of an empty stack.  It does not use
// the result, but the undefined-behaviour sanitizer reports it.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/writer.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace pe {

namespace detail {

/// The output of rapidjson::Writer, which requires the names Ch, Put and Flush.
class JsonStream {
 public:
  using Ch = char;

  explicit JsonStream(Output& out) : out_(out) {}
  // NOLINTBEGIN(readability-identifier-naming)
  void Put(char c) {
    if (c == kDelete || indent_) [[unlikely]]
      put_special(c);
    else
      append(c);
  }
  void Flush() {
    out_.write({buffer_.data(), size_});
    size_ = 0;
  }
  // NOLINTEND(readability-identifier-naming)
  void break_line(std::string_view indent) { indent_ = indent; }

 private:
  static constexpr char kDelete = '\x7f';  ///< occurs only in texts

  void append(char c) {
    if (size_ == buffer_.size())
      Flush();
    buffer_[size_++] = c;
  }
  void append(std::string_view text) {
    std::for_each(text.begin(), text.end(), [this](char c) { append(c); });
  }
  void put_special(char c) {
    if (c == kDelete)
      return append("\\u007f");
    append(c == ',' ? ",\n" : "\n");
    append(*std::exchange(indent_, std::nullopt));
    if (c != ',')
      append(c);
  }

  Output& out_;
  std::optional<std::string_view> indent_;  ///< of the line that starts before the next item
  std::size_t size_ = 0;
  std::array<char, 4096> buffer_{};
};

}  // namespace detail

/// A JSON value that the caller has made.
struct RawJson {
  std::string_view text;
};

class JsonWriter {
 public:
  /// `out` must outlive this.  It has all bytes when the outermost value ends.
  explicit JsonWriter(Output& out) : stream_(out), writer_(stream_) {}

  void start_object() { writer_.StartObject(); }
  void end_object() { writer_.EndObject(); }
  void start_array() { writer_.StartArray(); }
  void end_array() { writer_.EndArray(); }
  void key(std::string_view name) { value(name); }
  void start_object(std::string_view name) {
    key(name);
    start_object();
  }
  void start_array(std::string_view name) {
    key(name);
    start_array();
  }
  /// Writes a text, a number, true, false or, for nothing, null.  Bytes that are not UTF-8 become
  /// U+FFFD.
  template <typename Value>
  void value(const Value& value);
  /// Writes a member of an object, or several: a name, its value, the next name ...
  template <typename Value, typename... Others>
  void member(std::string_view name, const Value& its, const Others&... others) {
    key(name);
    value(its);
    if constexpr (sizeof...(others) > 0)
      member(others...);
  }
  /// Writes a member that is an array of what `value_of` returns for each item.
  template <typename Items, typename ValueOf>
  void list(std::string_view name, const Items& items, const ValueOf& value_of) {
    start_array(name);
    for (const auto& item : items)
      value(value_of(item));
    end_array();
  }
  /// Starts a line before the next value, key or closing bracket, but after a comma.
  /// `indent` must live until then.
  void break_line(std::string_view indent = {}) { stream_.break_line(indent); }

 private:
  static constexpr auto kAnyType = rapidjson::kStringType;  // used only to check keys

  detail::JsonStream stream_;
  rapidjson::Writer<detail::JsonStream> writer_;
};

template <typename Value>
void JsonWriter::value(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    writer_.Bool(value);
  } else if constexpr (std::is_same_v<Value, std::nullopt_t>) {
    writer_.Null();
  } else if constexpr (std::is_same_v<Value, RawJson>) {
    writer_.RawValue(value.text.data(), value.text.size(), kAnyType);
  } else if constexpr (std::is_floating_point_v<Value>) {
    this->value(RawJson{fmt::to_string(value)});  // rapidjson writes 1 as 1.0
  } else if constexpr (std::is_signed_v<Value>) {
    writer_.Int64(value);
  } else if constexpr (std::is_unsigned_v<Value>) {
    writer_.Uint64(value);
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    const std::string_view text = value;
    if (!is_valid_utf8(text))
      return this->value(made_valid_utf8(text));
    writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  } else {
    if (value)
      this->value(*value);
    else
      writer_.Null();
  }
}

}  // namespace pe
