// SPDX-License-Identifier: MIT
#include "recording/probes/static_probes.h"

#include <cstring>
#include <span>
#include <string_view>

#include "objects/notes.h"

namespace pe::objects {
namespace {

constexpr std::string_view kNoteName("stapsdt\0", 8);
constexpr std::uint32_t kNoteType = 3;
constexpr std::uint64_t kMaxNotesBytes = std::uint64_t{64} << 20;

std::optional<std::uint64_t> take_address(ByteReader& reader, bool is_64_bit) {
  if (is_64_bit)
    return reader.take<std::uint64_t>();
  const auto address = reader.take<std::uint32_t>();
  return address ? std::optional<std::uint64_t>(*address) : std::nullopt;
}

std::optional<StaticProbe> parse_probe(Bytes descriptor, bool is_64_bit,
                                       std::optional<std::uint64_t> base_svma) {
  ByteReader reader(descriptor);
  const auto place = take_address(reader, is_64_bit);
  const auto base = take_address(reader, is_64_bit);
  const auto semaphore = take_address(reader, is_64_bit);
  const auto provider = reader.take_string();
  const auto name = reader.take_string();
  const auto arguments = reader.take_string();
  if (!semaphore || !provider || !name || !arguments || name->empty())
    return std::nullopt;
  const std::uint64_t moved = base_svma ? *base_svma - *base : 0;  // may wrap around
  return StaticProbe{.provider = std::string(*provider),
                     .name = std::string(*name),
                     .svma = *place + moved,
                     .semaphore_svma = *semaphore == 0 ? 0 : *semaphore + moved,
                     .arguments = std::string(*arguments)};
}

}  // namespace

std::vector<StaticProbe> parse_static_probes(Bytes notes, bool is_64_bit,
                                             std::optional<std::uint64_t> base_svma) {
  std::vector<StaticProbe> probes;
  for_each_note(notes, sizeof(std::uint32_t), [&](const Note& note) {
    if (note.type != kNoteType || note.name.size() != kNoteName.size() ||
        std::memcmp(note.name.data(), kNoteName.data(), kNoteName.size()) != 0)
      return true;
    auto probe = parse_probe(note.descriptor, is_64_bit, base_svma);
    if (probe)
      probes.push_back(std::move(*probe));
    return probe.has_value();
  });
  return probes;
}

std::vector<StaticProbe> read_static_probes(const Image& image) {
  const Section* section = image.section(".note.stapsdt");
  const auto notes = section == nullptr ? std::nullopt : image.read(*section, kMaxNotesBytes);
  if (!notes)
    return {};
  const Section* base = image.section(".stapsdt.base");
  return parse_static_probes(*notes, image.is_64_bit(),
                             base == nullptr ? std::nullopt : std::optional(base->svma));
}

std::optional<std::uint64_t> semaphore_offset(const Image& image, const StaticProbe& probe) {
  using Semaphore = std::uint16_t;
  const std::uint64_t svma = probe.semaphore_svma;
  if (svma == 0)
    return 0;
  const Section* section = image.section(".probes");
  if (section == nullptr || !section->covers(svma) || svma % sizeof(Semaphore) != 0)
    return std::nullopt;
  for (const Segment& segment : image.segments()) {
    if (svma < segment.svma || svma - segment.svma >= segment.file_bytes)
      continue;
    const std::uint64_t offset = segment.file_offset + (svma - segment.svma);
    Semaphore value = 1;
    if (segment.writable && !segment.executable &&
        image.read_at(offset, std::as_writable_bytes(std::span(&value, 1))) && value == 0)
      return offset;
    break;
  }
  return std::nullopt;
}

}  // namespace pe::objects
