// SPDX-License-Identifier: MIT
#include "languages/common/script_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"
#include "base/text.h"
#include "stream/records/callchain.h"

namespace pe::languages {
namespace {

/// The type of these records, which are internal and not written to the stream.
constexpr std::uint32_t kRecordScript = 0x5045fffe;
/// In misc: the stack lacks its outer frames.
constexpr std::uint16_t kMiscCut = 1;

struct ScriptHead {
  perf_event_header header{};
  std::uint64_t time_ns = 0;
  std::uint64_t ranges = 0;
};

void append(std::vector<std::byte>& records, Bytes bytes) {
  records.insert(records.end(), bytes.begin(), bytes.end());
}

bool is_of_loop(const ScriptStack& script, std::uint64_t address) {
  return std::ranges::any_of(script.loop, [address](const CodeRange& range) {
    return address >= range.start && address < range.end;
  });
}

}  // namespace

void add_script_record(const ScriptStack& stack, std::uint64_t time_ns,
                       std::vector<std::byte>& records) {
  constexpr std::size_t kMostBytes = 65'528;
  const Bytes ranges = std::as_bytes(std::span(stack.loop));
  const std::size_t room = (kMostBytes - sizeof(ScriptHead) - ranges.size()) / sizeof(ScriptWord);
  const auto words = std::span(stack.words).first(std::min(stack.words.size(), room));
  const bool is_cut = !stack.is_complete || words.size() < stack.words.size();
  const ScriptHead head{
      {kRecordScript, is_cut ? kMiscCut : std::uint16_t{0},
       static_cast<std::uint16_t>(sizeof head + ranges.size() + words.size_bytes())},
      time_ns,
      stack.loop.size()};
  append(records, std::as_bytes(std::span(&head, 1)));
  append(records, ranges);
  append(records, std::as_bytes(words));
}

std::optional<std::uint64_t> time_of_script(const stream::Record& record) {
  if (record.type != kRecordScript)
    return std::nullopt;
  return ByteReader(record.body()).take<std::uint64_t>();
}

bool KeptScript::take(const stream::Record& record) {
  if (record.type != kRecordScript)
    return false;
  stack_.loop.clear();
  stack_.words.clear();
  stack_.is_complete = record.misc != kMiscCut;
  ByteReader reader(record.bytes);
  const std::uint64_t ranges = reader.take<ScriptHead>().value_or(ScriptHead{}).ranges;
  for (std::uint64_t i = 0; i < ranges; ++i)
    if (const auto range = reader.take<CodeRange>())
      stack_.loop.push_back(*range);
  while (const auto word = reader.take<ScriptWord>())
    stack_.words.push_back(*word);
  return true;
}

/// Divides the script's frames into the calls of the loop to which they belong.
void ScriptMerger::find_calls(const ScriptStack& script) {
  calls_.clear();
  const std::span<const ScriptWord> words = script.words;
  std::optional<std::size_t> own;
  std::size_t first = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool ends_stack = words[i] == 0;
    if (ends_stack ? i > first : (words[i] & kEndsCall) != 0 || i + 1 == words.size())
      calls_.push_back(words.subspan(first, i + 1 - first));
    else if (!ends_stack)
      continue;
    first = i + 1;
    if (ends_stack && !own)
      own = calls_.size();
  }
  own_calls_ = own.value_or(calls_.size());
}

/// Finds the native frames of the interpreter's loop.
void ScriptMerger::find_loops(std::span<const std::uint64_t> chain, const ScriptStack& script) {
  loops_.clear();
  stream::detail::ChainWalk walk(false);
  for (std::size_t i = 0; i < chain.size(); ++i)
    if (const auto entry = walk.take(chain[i]);
        entry && !entry->is_kernel && is_of_loop(script, entry->lookup_address))
      loops_.push_back(i);
}

/// Adds the frames of calls.
void ScriptMerger::add_calls(std::size_t first, std::size_t end) {
  for (std::size_t call = first; call < end; ++call)
    for (const ScriptWord word : calls_[call]) {
      const std::uint64_t address = word & ~kEndsCall;
      if (address == 0)
        continue;
      merged_.push_back(address + (has_user_frame_ ? 1 : 0));
      has_user_frame_ = true;
    }
}

/// Pairs frames of the loop with calls from the root, and returns how many of the innermost remain.
ScriptMerger::Unpaired ScriptMerger::unpaired_innermost() const {
  if (loops_.size() > own_calls_)
    return {.loops = loops_.size() - own_calls_, .calls = 0};
  return {.loops = 0, .calls = loops_.empty() ? 0 : own_calls_ - loops_.size()};
}

/// Returns the chain up to the call of the loop where the script's stack was cut: the callers of
/// that call's outermost known function are unknown.
std::span<const std::uint64_t> ScriptMerger::known_part(
    std::span<const std::uint64_t> chain) const {
  const bool ends_in_loop = own_calls_ == calls_.size() && own_calls_ <= loops_.size();
  return ends_in_loop && own_calls_ > 0 ? chain.first(loops_[own_calls_ - 1] + 1) : chain;
}

void ScriptMerger::describe(Closing& closing) const {
  if (counts_.stacks > 0)
    closing.detail(
        fmt::format("{} with scripts, {} of them between two states of the interpreter's loop",
                    plural(counts_.stacks, "stack"), counts_.mismatched));
  if (counts_.cut > 0)
    closing.doubt(plural(counts_.cut, "stack") + " of scripts cut at the root",
                  "see HOW STACKS END in pe-record(1)");
}

/// Merges a stack in which the loop is about to start: the functions are innermost.
std::span<const std::uint64_t> ScriptMerger::merge_starting(std::span<const std::uint64_t> chain) {
  bool is_user = false;
  std::size_t i = 0;
  for (; i < chain.size(); ++i) {
    if (stream::detail::ChainWalk::is_mark(chain[i]))
      is_user = chain[i] == PERF_CONTEXT_USER;
    else if (is_user)
      break;
    merged_.push_back(chain[i]);
  }
  if (!is_user)
    merged_.push_back(PERF_CONTEXT_USER);
  add_calls(0, own_calls_);
  if (i < chain.size()) {
    // The first user address is exact.  Behind frames of a script it is looked up as a return
    // address.
    merged_.push_back(chain[i] + (has_user_frame_ ? 1 : 0));
    has_user_frame_ = true;
    merged_.insert(merged_.end(), chain.begin() + static_cast<std::ptrdiff_t>(i) + 1, chain.end());
  }
  add_calls(own_calls_, calls_.size());
  return merged_;
}

std::span<const std::uint64_t> ScriptMerger::merge(std::span<const std::uint64_t> chain,
                                                   bool is_complete, const ScriptStack& script) {
  if (script.empty())
    return chain;
  ++counts_.stacks;
  find_calls(script);
  find_loops(chain, script);
  const bool is_whole = is_complete && script.is_complete;
  counts_.mismatched += is_whole && loops_.size() != own_calls_ ? 1 : 0;
  const Unpaired unpaired = is_whole ? unpaired_innermost() : Unpaired{};
  if (!script.is_complete)
    chain = known_part(chain);
  merged_.clear();
  has_user_frame_ = false;
  return is_whole && loops_.empty() && own_calls_ > 0 ? merge_starting(chain)
                                                      : merge_paired(chain, unpaired);
}

/// Merges a stack in which each call of the loop, from the innermost one that is not unpaired, runs
/// the next of the script's own calls.
std::span<const std::uint64_t> ScriptMerger::merge_paired(std::span<const std::uint64_t> chain,
                                                          const Unpaired& unpaired) {
  bool is_user = false;
  std::size_t loop = 0, call = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const bool is_mark = stream::detail::ChainWalk::is_mark(chain[i]);
    is_user = is_mark ? chain[i] == PERF_CONTEXT_USER : is_user;
    const bool is_loop = loop < loops_.size() && loops_[loop] == i;
    if (is_loop && loop++ >= unpaired.loops && call < own_calls_) {
      const std::size_t end = call + 1 + (call == 0 ? unpaired.calls : 0);
      add_calls(call, end);
      call = end;
      continue;
    }
    merged_.push_back(chain[i]);
    has_user_frame_ = has_user_frame_ || (is_user && !is_mark);
  }
  if (call < calls_.size() && !is_user)
    merged_.push_back(PERF_CONTEXT_USER);
  add_calls(call, calls_.size());
  return merged_;
}

}  // namespace pe::languages
