// Reads the time profile that Xcode's xctrace exports as XML:
//
//   <trace-query-result><node xpath="..."><schema name="time-profile">...</schema>
//   <row><sample-time id="1" fmt="00:00.057">57246708</sample-time> ...
//     <weight id="9" fmt="1.00 ms">1000000</weight>
//     <backtrace id="10"><frame id="11" name="work" addr="0x18d"><binary id="12" name="app" .../>
//       </frame><frame id="13" name="main" addr="0x18c"><binary
//       ref="12"/></frame></backtrace></row>
//   <row> ... <weight ref="9"/><backtrace ref="10"/></row>
//
// The command is: xctrace export --input F.trace --xpath '.../table[@schema="time-profile"]'.
// "ref" refers to an earlier element by its id.  Frames are leaf first; weights are in nanoseconds.
// Newer versions put a backtrace into a tagged-backtrace, which also has an id.
// Source: xctrace(1), and published exports of Xcode 14 to 16.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "folded/count.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold::xctrace {
namespace {

/// The start of an element.  The views are valid only during the call.
struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;

  /// Returns nullopt if the element has no such attribute.
  [[nodiscard]] std::optional<std::string_view> attribute(std::string_view wanted) const {
    for (const auto& [key, value] : attributes)
      if (key == wanted)
        return value;
    return std::nullopt;
  }
};

struct FreeParser {
  void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
};

std::uint64_t line_number(XML_Parser parser) noexcept {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

/// Reads XML front to back.  A handler has begin(), end(), and text(): one text may arrive in
/// several calls.  Input is untrusted, so the reader refuses a document type, because entities let
/// a few bytes expand to many.
template <typename Handler>
class XmlReader {
 public:
  explicit XmlReader(Handler& handler) : handler_(handler), parser_(XML_ParserCreate(nullptr)) {
    if (!parser_)
      throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), on_begin, on_end);
    XML_SetCharacterDataHandler(parser_.get(), on_text);
    XML_SetStartDoctypeDeclHandler(parser_.get(), on_document_type);
  }

  /// Reads `input` to its end.  Returns an error message, "line 3: not well-formed (invalid
  /// token)", or an empty string.
  std::string read(Input& input) {
    constexpr std::size_t kPieceBytes = 64UL * 1024;
    std::vector<std::byte> piece(kPieceBytes);
    for (std::size_t size = 1; size > 0;) {
      size = input.read(piece);
      if (XML_Parse(parser_.get(), reinterpret_cast<const char*>(piece.data()),
                    static_cast<int>(size), size == 0 ? XML_TRUE : XML_FALSE) == XML_STATUS_OK)
        continue;
      const char* problem = has_document_type_ ? "document types are not accepted"
                                               : XML_ErrorString(XML_GetErrorCode(parser_.get()));
      return fmt::format("line {}: {}", line_number(parser_.get()), problem);
    }
    return {};
  }

 private:
  // Expat is C code, so no exception may cross it.  std::bad_alloc ends the program in these
  // handlers.
  static void on_begin(void* self, const XML_Char* name, const XML_Char** attributes) noexcept {
    XmlElement element{name, {}};
    for (; attributes[0] != nullptr; attributes += 2)
      element.attributes.emplace_back(attributes[0], attributes[1]);
    static_cast<XmlReader*>(self)->handler_.begin(element);
  }
  static void on_end(void* self, const XML_Char* name) noexcept {
    static_cast<XmlReader*>(self)->handler_.end(name);
  }
  static void on_text(void* self, const XML_Char* text, int size) noexcept {
    static_cast<XmlReader*>(self)->handler_.text({text, static_cast<std::size_t>(size)});
  }
  static void on_document_type(void* self, const XML_Char* /*name*/, const XML_Char* /*system*/,
                               const XML_Char* /*public_id*/,
                               int /*has_internal_subset*/) noexcept {
    auto* reader = static_cast<XmlReader*>(self);
    reader->has_document_type_ = true;
    XML_StopParser(reader->parser_.get(), XML_FALSE);
  }

  Handler& handler_;
  std::unique_ptr<XML_ParserStruct, FreeParser> parser_;
  bool has_document_type_ = false;
};

enum Type : std::size_t { kSamples, kTime };

/// Earlier elements by their id.
template <typename T>
using ById = std::map<std::string, T, std::less<>>;

struct Backtrace {
  std::vector<folded::FrameId> leaf_first;
  std::uint64_t samples = 0;
  folded::Count time_ns;
};

class Collapser {
 public:
  Collapser(const Options& options, folded::FoldedCounts& counts)
      : options_(options), counts_(counts), types_(counts, options) {}

  TextReport fold(Input& input) {
    const std::vector<SampleType> types{{"samples", "count"}, {"time", "nanoseconds"}};
    if (types_.choose(types, kSamples))
      report_.damage = XmlReader(*this).read(input);
    else
      report_.damage = no_such_type(options_.event.value_or(""), types);
    add_stacks();
    if (unknown_ > 0)
      report_.left_out = plural(unknown_, "row") + " without a known backtrace left out";
    return report_;
  }

  void begin(const XmlElement& element) {
    if (element.name == "row") {
      in_row_ = true;
      backtrace_.reset();
      tagged_id_.clear();
      weight_ns_ = 0;
    } else if (in_row_ && (element.name == "backtrace" || element.name == "tagged-backtrace")) {
      begin_backtrace(element);
    } else if (in_row_ && element.name == "weight") {
      begin_weight(element);
    } else if (backtrace_ && element.name == "frame") {
      begin_frame(element);
    } else if (frame_ && element.name == "binary") {
      begin_binary(element);
    }
  }

  void end(std::string_view name) {
    if (name == "frame" && frame_)
      end_frame();
    else if (name == "weight" && in_weight_)
      end_weight();
    else if (name == "row" && in_row_)
      end_row();
  }

  void text(std::string_view text) {
    constexpr std::size_t kLongest = 64;  // a number and blanks
    if (in_weight_ && weight_text_.size() < kLongest)
      weight_text_ += text.substr(0, kLongest);
  }

 private:
  void begin_backtrace(const XmlElement& element) {
    const auto id = element.attribute("id");
    if (const auto ref = element.attribute("ref")) {
      const auto known = backtrace_ids_.find(*ref);
      if (known != backtrace_ids_.end())
        backtrace_ = known->second;
    } else if (element.name == "tagged-backtrace") {
      tagged_id_ = id.value_or("");  // its backtrace follows
      return;
    } else {
      backtrace_ = backtraces_.size();
      backtraces_.emplace_back();
      backtrace_ids_.emplace(id.value_or(""), *backtrace_);
    }
    if (backtrace_ && !tagged_id_.empty())
      backtrace_ids_.emplace(tagged_id_, *backtrace_);
    tagged_id_.clear();
  }

  void begin_weight(const XmlElement& element) {
    const auto ref = element.attribute("ref");
    const auto known = ref ? weights_.find(*ref) : weights_.end();
    if (known != weights_.end())
      weight_ns_ = known->second;
    in_weight_ = !ref;
    weight_id_ = element.attribute("id").value_or("");
    weight_text_.clear();
  }

  void begin_frame(const XmlElement& element) {
    if (const auto ref = element.attribute("ref")) {
      const auto known = frames_.find(*ref);
      add_frame(known == frames_.end() ? counts_.frames().intern("[unknown]") : known->second);
      return;
    }
    frame_ =
        std::string(element.attribute("name").value_or(element.attribute("addr").value_or("")));
    frame_id_ = element.attribute("id").value_or("");
    module_.clear();
  }

  void begin_binary(const XmlElement& element) {
    const auto ref = element.attribute("ref");
    const auto known = ref ? binaries_.find(*ref) : binaries_.end();
    if (known != binaries_.end())
      module_ = known->second;
    else
      module_ = element.attribute("name").value_or("");
    if (const auto id = element.attribute("id"))
      binaries_.emplace(*id, module_);
  }

  void end_frame() {
    std::string text = clean_name(*frame_);
    if (options_.with_modules && !module_.empty())
      text.insert(0, clean_name(module_) + "`");
    const folded::FrameId frame = counts_.frames().intern(text);
    frames_.emplace(frame_id_, frame);
    add_frame(frame);
    frame_.reset();
  }

  void end_weight() {
    in_weight_ = false;
    weight_ns_ = lone_number(weight_text_).value_or(0);
    weights_.emplace(weight_id_, weight_ns_);
  }

  void end_row() {
    in_row_ = false;
    if (!backtrace_) {
      ++unknown_;
      return;
    }
    Backtrace& backtrace = backtraces_[*backtrace_];
    ++backtrace.samples;
    (void)backtrace.time_ns.add({.whole = weight_ns_});  // saturates, as counts do
    ++report_.samples;
    backtrace_.reset();
  }

  void add_frame(folded::FrameId frame) { backtraces_[*backtrace_].leaf_first.push_back(frame); }

  void add_stacks() {
    for (Backtrace& backtrace : backtraces_) {
      if (backtrace.samples == 0)
        continue;
      std::vector<folded::FrameId>& stack = backtrace.leaf_first;
      if (stack.empty())
        stack.push_back(counts_.frames().intern("[unknown]"));
      std::reverse(stack.begin(), stack.end());
      types_.add(stack, kSamples, backtrace.samples);
      if (backtrace.time_ns.whole > 0)
        types_.add(stack, kTime, backtrace.time_ns.whole);
    }
    types_.finish();
  }

  TextReport report_;
  const Options& options_;
  folded::FoldedCounts& counts_;
  SampleTypes types_;
  std::vector<Backtrace> backtraces_;
  ById<std::size_t> backtrace_ids_;  ///< in backtraces_
  ById<folded::FrameId> frames_;
  ById<std::string> binaries_;
  ById<std::uint64_t> weights_;
  bool in_row_ = false;
  bool in_weight_ = false;
  std::optional<std::size_t> backtrace_;  ///< of the current row, in backtraces_
  std::optional<std::string> frame_;      ///< the current frame, until it ends
  std::string frame_id_, module_;         ///< of frame_
  std::string tagged_id_;                 ///< of the element around the next backtrace
  std::string weight_id_, weight_text_;
  std::uint64_t weight_ns_ = 0;
  std::uint64_t unknown_ = 0;
};

}  // namespace

bool looks_like(std::string_view head) {
  head.remove_prefix(std::min(head.find('<'), head.size()));
  return head.starts_with("<?xml") && head.find("<trace-query-result") != head.npos;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Collapser(options, counts).fold(input);
}

}  // namespace pe::fold::xctrace
