// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/xml.h"

#include <expat.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>

namespace pe::fold {
namespace {

struct FreeParser {
  void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
};
using Parser = std::unique_ptr<XML_ParserStruct, FreeParser>;

struct State {
  XML_Parser parser;
  XmlHandler& handler;
  bool has_document_type = false;
};

extern "C" {

// Expat is C code, so no exception may cross it.  std::bad_alloc ends the program in these
// handlers.
void on_begin(void* state, const XML_Char* name, const XML_Char** attributes) noexcept {
  XmlElement element{name, {}};
  for (; attributes[0] != nullptr; attributes += 2)
    element.attributes.emplace_back(attributes[0], attributes[1]);
  static_cast<State*>(state)->handler.begin(element);
}

void on_end(void* state, const XML_Char* name) noexcept {
  static_cast<State*>(state)->handler.end(name);
}

void on_text(void* state, const XML_Char* text, int size) noexcept {
  static_cast<State*>(state)->handler.text({text, static_cast<std::size_t>(size)});
}

void on_document_type(void* state, const XML_Char* /*name*/, const XML_Char* /*system*/,
                      const XML_Char* /*public_id*/, int /*has_internal_subset*/) noexcept {
  auto* of = static_cast<State*>(state);
  of->has_document_type = true;
  XML_StopParser(of->parser, XML_FALSE);
}

}  // extern "C"

std::uint64_t line_number(XML_Parser parser) noexcept {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

}  // namespace

std::string read_xml(Input& input, XmlHandler& handler) {
  constexpr std::size_t kPieceBytes = 64UL * 1024;
  const Parser parser(XML_ParserCreate(nullptr));
  if (!parser)
    throw std::bad_alloc();
  State state{parser.get(), handler};
  XML_SetUserData(parser.get(), &state);
  XML_SetElementHandler(parser.get(), on_begin, on_end);
  XML_SetCharacterDataHandler(parser.get(), on_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), on_document_type);
  std::vector<std::byte> piece(kPieceBytes);
  for (;;) {
    const std::size_t size = input.read(piece);
    const bool is_last = size == 0;
    if (XML_Parse(parser.get(), reinterpret_cast<const char*>(piece.data()), static_cast<int>(size),
                  is_last ? XML_TRUE : XML_FALSE) != XML_STATUS_OK) {
      const char* problem = state.has_document_type
                                ? "document types are not accepted"
                                : XML_ErrorString(XML_GetErrorCode(parser.get()));
      return fmt::format("line {}: {}", line_number(parser.get()), problem);
    }
    if (is_last)
      return {};
  }
}

}  // namespace pe::fold
