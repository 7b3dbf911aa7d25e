// SPDX-License-Identifier: MIT
#include "languages/common/interpreter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "base/byte_reader.h"
#include "languages/built_languages.h"
#include "objects/image.h"
#include "unwind/cfi/unwind_table.h"
#include "unwind/x86_64_instruction.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostRanges = 8;

/// The symbols in a file that one of the interpreters has.
struct Found {
  ScriptBinary binary;
  std::array<std::uint64_t, kMostSymbols> symbols{};
};

/// Returns whether the name is the loop's, or of a part that the compiler has moved away:
/// "_PyEval_EvalFrameDefault.cold".
bool is_of_loop(std::string_view name, std::string_view loop) {
  return name.starts_with(loop) && (name.size() == loop.size() || name[loop.size()] == '.');
}

void take_symbol(const Interpreter& interpreter, Found& found, std::string_view name,
                 ScriptBinary::Range range) {
  const auto symbol = std::ranges::find(interpreter.symbols, name);
  if (symbol != interpreter.symbols.end() && !name.empty())
    found.symbols[static_cast<std::size_t>(symbol - interpreter.symbols.begin())] = range.start;
  std::vector<ScriptBinary::Range>& loop = found.binary.loop;
  if (is_of_loop(name, interpreter.loop) && range.end > range.start && loop.size() < kMostRanges &&
      std::ranges::find(loop, range.start, &ScriptBinary::Range::start) == loop.end())
    loop.push_back(range);
}

/// Fills `into` with the bytes that the file loads from `svma` on, and zeros between them.  Returns
/// false if it loads none.
bool read_loaded(const objects::Image& image, std::uint64_t svma, std::span<std::byte> into) {
  std::ranges::fill(into, std::byte{0});
  const std::uint64_t end = svma + into.size();
  bool has_bytes = false;
  for (const objects::Segment& segment : image.segments()) {
    const std::uint64_t from = std::max(svma, segment.svma);
    const std::uint64_t to = std::min(end, segment.svma + segment.file_bytes);
    if (end > svma && from < to)
      has_bytes = image.read_at(segment.file_offset + (from - segment.svma),
                                into.subspan(from - svma, to - from)) ||
                  has_bytes;
  }
  return has_bytes;
}

}  // namespace

std::optional<ScriptBinary> find_interpreter(const objects::Image& image, bool may_be_other) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
  constexpr std::uint64_t kMostOfOther = std::uint64_t{16} << 20U;
  if (!image.is_x86_64())
    return std::nullopt;
  const auto all = interpreters();
  std::vector<Found> found(all.size());
  objects::for_each_symbol(
      image,
      [&](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        for (std::size_t i = 0; i < all.size(); ++i)
          take_symbol(*all[i], found[i], name, {svma, svma + bytes});
      },
      may_be_other ? kMostOfOther : kMostBytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    found[i].binary.language = all[i]->number;
    if (all[i]->complete(image, found[i].symbols, found[i].binary))
      return std::move(found[i].binary);
  }
  return std::nullopt;
}

Memory loaded_memory(const objects::Image& image) {
  return Memory([&image](std::uint64_t svma, std::span<std::byte> into) {
    return read_loaded(image, svma, into) ? into.size() : 0;
  });
}

std::variant<ScriptLayout, std::string> script_layout(Memory& memory, const ScriptBinary& binary,
                                                      std::uint64_t bias) {
  return interpreter_of(binary.language).layout(memory, binary, bias);
}

bool kernel_reads(const ScriptLayout& layout) {
  const auto reads = interpreter_of(layout.language).kernel_reads;
  return reads == nullptr || reads(layout);
}

bool LineTable::add(std::uint64_t end, std::int64_t line) {
  constexpr std::int64_t kMostLine = std::numeric_limits<std::int32_t>::max();
  if (end > std::numeric_limits<std::uint32_t>::max())
    return false;
  const auto shown = static_cast<std::uint32_t>(std::clamp<std::int64_t>(line, 0, kMostLine));
  if (!entries_.empty() && entries_.back().line == shown)
    entries_.back().end = static_cast<std::uint32_t>(end);
  else
    entries_.push_back({static_cast<std::uint32_t>(end), shown});
  return true;
}

std::uint32_t LineTable::line_at(std::uint64_t place) const noexcept {
  const auto entry = std::ranges::upper_bound(entries_, place, {}, &Entry::end);
  return entry == entries_.end() ? 0 : entry->line;
}

namespace {

/// Those of this build.
#define PE_ONE(Name, name) +1
#define PE_ROW(Name, name) &k##Name##Interpreter,
constexpr std::array<const Interpreter*, 0 PE_FOR_EACH_BUILT_INTERPRETER(PE_ONE)> kInterpreters = {
    PE_FOR_EACH_BUILT_INTERPRETER(PE_ROW)};
#undef PE_ONE
#undef PE_ROW

}  // namespace

std::span<const Interpreter* const> interpreters() noexcept { return kInterpreters; }

const Interpreter& interpreter_of(std::uint32_t number) noexcept {
  return **std::ranges::find(kInterpreters, number,
                             [](const Interpreter* each) { return each->number; });
}

namespace {

/// Counts consecutive words that lead into one function.
class TableSearch {
 public:
  explicit TableSearch(const objects::Image& image) : functions_(image) {}

  /// Examines the word at `svma`, which holds the address `target`.  Words come in ascending order.
  void examine(std::uint64_t svma, std::uint64_t target) {
    const bool follows = length_ > 0 && svma == last_ + sizeof(std::uint64_t);
    if (!follows || !function_.covers(target)) {
      const auto function = functions_.range_of(target);
      function_ = function.value_or(unwind::FunctionRanges::Range{0, 0});
      length_ = 0;
    }
    last_ = svma;
    length_ += function_.covers(target) ? 1 : 0;
    if (length_ > longest_) {
      longest_ = length_;
      found_ = function_;
    }
  }
  /// The next word does not follow the last one.
  void interrupt() noexcept { length_ = 0; }

  [[nodiscard]] std::optional<unwind::FunctionRanges::Range> found(std::size_t least) const {
    return longest_ >= least && longest_ > 0 ? std::optional(found_) : std::nullopt;
  }

 private:
  unwind::FunctionRanges functions_;
  unwind::FunctionRanges::Range function_{0, 0}, found_{0, 0};
  std::uint64_t last_ = 0;
  std::size_t length_ = 0, longest_ = 0;
};

bool is_in_code(const objects::Image& image, std::uint64_t svma) {
  return std::ranges::any_of(image.segments(), [svma](const objects::Segment& segment) {
    return segment.executable && svma >= segment.svma && svma - segment.svma < segment.memory_bytes;
  });
}

/// Examines the addresses that the dynamic linker writes.
void examine_relocations(const objects::Image& image, TableSearch& search) {
  struct Relocation {
    std::uint64_t svma, info, addend;
  };
  constexpr std::uint64_t kRelative = 8;  // R_X86_64_RELATIVE
  const auto section = image.section_bytes(".rela.dyn");
  ByteReader reader(section ? Bytes(section->bytes) : Bytes());
  constexpr std::size_t kOfTurn = 64;
  std::size_t count = 0;
  while (const auto relocation = reader.take<Relocation>()) {
    if (++count % kOfTurn == 0 && !image.may_go_on())
      return;
    if (relocation->info == kRelative && is_in_code(image, relocation->addend))
      search.examine(relocation->svma, relocation->addend);
  }
}

/// Examines the addresses that are in the file: those of a program at a fixed address, and those of
/// compact relocations (.relr.dyn).
void examine_data(const objects::Image& image, TableSearch& search) {
  for (const char* name : {".rodata", ".data.rel.ro"}) {
    const auto section = image.section_bytes(name);
    constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t), kBytesOfTurn = 512;
    ByteReader reader(section ? Bytes(section->bytes) : Bytes());
    std::uint64_t svma = section ? section->svma : 0;
    search.interrupt();
    while (const auto word = reader.take<std::uint64_t>()) {
      if (svma % kBytesOfTurn == 0 && !image.may_go_on())
        return;
      if (is_in_code(image, *word))
        search.examine(svma, *word);
      svma += kWordBytes;
    }
  }
}

}  // namespace

std::optional<unwind::FunctionRanges::Range> function_of_longest_table(const objects::Image& image,
                                                                       std::size_t least) {
  if (!image.is_x86_64())
    return std::nullopt;
  TableSearch search(image);
  examine_relocations(image, search);
  examine_data(image, search);
  return search.found(least);
}

namespace {

using Target = std::uint64_t;

/// Returns where the instructions of a range jump to.  Ends at the first that cannot be decoded.
std::vector<Target> jumps_in(const objects::Image& image,
                             const unwind::FunctionRanges::Range& range) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20U;
  std::vector<Target> targets;
  const std::uint64_t size = range.end_svma - range.start_svma;
  const auto loaded = image.loaded_bytes(range.start_svma, std::min(size, kMostBytes));
  const Bytes bytes = loaded ? Bytes(loaded->bytes) : Bytes();
  std::size_t at = 0;
  while (const auto instruction = unwind::decode_x86_64(bytes.subspan(at))) {
    at += instruction->bytes;
    using Flow = unwind::Instruction::Flow;
    if (instruction->flow == Flow::kJump || instruction->flow == Flow::kBranch)
      targets.push_back(range.start_svma + at + static_cast<std::uint64_t>(instruction->target));
  }
  return targets;
}

}  // namespace

std::vector<unwind::FunctionRanges::Range> moved_parts(const objects::Image& image,
                                                       unwind::FunctionRanges::Range function) {
  constexpr std::size_t kMostParts = 8;
  constexpr unwind::Rule kAtEntry(unwind::RuleKind::kStackPointer, 1, 0);
  std::vector<unwind::FunctionRanges::Range> found;
  if (!image.is_x86_64())
    return found;
  const unwind::FunctionRanges ranges(image);
  unwind::UnwindTable rules(image);
  const auto examine = [&](const unwind::FunctionRanges::Range& range) {
    for (const Target target : jumps_in(image, range)) {
      constexpr std::size_t kTurnsOfFunction = 64;  // its rules take up to 5 ms
      if (!image.may_go_on(kTurnsOfFunction))
        return;
      const bool is_known =
          function.covers(target) ||
          std::ranges::any_of(found, [target](const unwind::FunctionRanges::Range& part) {
            return part.covers(target);
          });
      const auto part = is_known ? std::nullopt : ranges.range_of(target);
      const bool is_part =
          part && !part->covers(function.start_svma) && rules.rule(part->start_svma) != kAtEntry;
      if (is_part && found.size() < kMostParts)
        found.push_back(*part);
    }
  };
  examine(function);
  for (std::size_t i = 0; i < found.size(); ++i)
    examine(unwind::FunctionRanges::Range(found[i]));
  return found;
}

std::optional<std::uint64_t> first_loaded_pointer(Bytes code, std::uint64_t svma) {
  // mov disp32(%rip), r64: REX.W, the opcode 8b, and a ModRM byte with mode 0 and base 5.
  constexpr unsigned kWide = 0x48, kWideMask = 0xfb, kLoad = 0x8b, kRelative = 0x05,
                     kRelativeMask = 0xc7;
  constexpr std::size_t kBytes = 7, kDistanceAt = 3;
  const auto byte = [&code](std::size_t at) { return std::to_integer<unsigned>(code[at]); };
  for (std::size_t at = 0; at + kBytes <= code.size(); ++at) {
    if ((byte(at) & kWideMask) != kWide || byte(at + 1) != kLoad ||
        (byte(at + 2) & kRelativeMask) != kRelative)
      continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, code.data() + at + kDistanceAt, sizeof distance);
    return svma + at + kBytes + static_cast<std::uint64_t>(std::int64_t{distance});
  }
  return std::nullopt;
}

}  // namespace pe::languages
