// SPDX-License-Identifier: MIT
#include "pe-symbolize/pe_symbolize.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/cli/run.h"
#include "base/error.h"
#include "base/text.h"
#include "objects/debug_file.h"
#include "pe-symbolize/annotator.h"
#include "pe-symbolize/debuginfod.h"
#include "pe-symbolize/options.h"
#include "pe-symbolize/time_choice.h"
#include "stream/user_copy.h"

namespace pe {
namespace {

using stream::Session;

/// Returns which kind of recorder made a stream, by the units of its events.
symbolize::Recorder recorder_of(const Session& session) {
  for (const stream::Event& event : session.events().all()) {
    if (event.unit == "bytes" || event.unit == "allocations")
      return symbolize::Recorder::kOfAllocations;
    if (event.name == "offcpu")
      return symbolize::Recorder::kOfWaits;
  }
  return symbolize::Recorder::kOfSamples;
}

/// Prints advice to the user about missing symbols.
void advise(const Session& session, const symbolize::Annotator& annotator,
            const names::Resolver& resolver, bool has_servers, const Io& io) {
  const auto is_go = [&resolver](std::string_view file) { return resolver.is_go(file); };
  if (const auto line = names::describe_stripped(annotator.counts(), has_servers, is_go);
      !line.empty())
    io.note(line);
  if (const std::string line = names::describe_unwritten(annotator.counts()); !line.empty())
    io.note(line);
  for (const std::string& line : annotator.advice().lines(recorder_of(session)))
    io.note(line);
}

/// Returns the record's time, if it is of this clock; times of another one cannot be compared.
std::uint64_t monotonic_time(const Session& session, const stream::Record& record) {
  const stream::Event* event = session.events().find(record);
  const bool is_monotonic =
      event != nullptr && event->attr.use_clockid != 0 && event->attr.clockid == CLOCK_MONOTONIC;
  return is_monotonic ? stream::time_of(record, event->attr) : 0;
}

/// Updates the symbols when mappings change.
void follow_mappings(const Session& session, symbolize::Annotator& annotator,
                     names::Resolver& resolver) {
  const auto& change = session.mapping_change();
  if (!change)
    return;
  annotator.forget(*change);
  if (change->mapped == nullptr)
    resolver.forget_jit(change->pid);
  else if (change->mapped->is_anonymous())
    resolver.expect_jit(change->pid);
  else
    resolver.expect_jit_dump(change->pid, change->mapped->path);
}

/// Updates the symbols when the sampled process compiles code.
void follow_compiler(const Session& session, std::uint64_t time_ns, symbolize::Annotator& annotator,
                     names::Resolver& resolver) {
  const std::uint32_t pid = session.sample()->pid;
  if (time_ns == 0)  // the newest symbols count, as in a perf map
    time_ns = std::numeric_limits<std::uint64_t>::max();
  resolver.advance_jit(pid, time_ns, [&](std::uint64_t start, std::uint64_t end) {
    annotator.forget({.pid = pid, .start = start, .end = end});
  });
}

/// Writes `chain` in place of the sample's; false if it does not fit.
bool replace_chain(symbolize::CopiedStacks::Outcome& walked, std::span<const std::uint64_t> chain,
                   stream::RecordBuilder& builder) {
  constexpr std::size_t kMaxRecordBytes = std::numeric_limits<std::uint16_t>::max() - 7;
  const std::size_t more =
      chain.size_bytes() - std::min(chain.size_bytes(), walked.sample->callchain.bytes().size());
  if (walked.record.bytes.size() + more > kMaxRecordBytes)
    return false;
  const auto changed = stream::replace_call_chain(walked.record, *walked.sample, chain, builder);
  walked.record = stream::view_record(std::as_bytes(std::span(changed)));
  return true;
}

/// Removes what an earlier pass inserted.
void remove_tail_calls(const Session& session, symbolize::CopiedStacks::Outcome& walked,
                       stream::RecordBuilder& builder) {
  const stream::U64View words = walked.sample->callchain;
  const auto is_inserted_word = [](std::uint64_t word) {
    return word >= stream::kTailCallStart && word <= stream::kTailCallEnd;
  };
  std::size_t first = 0;
  while (first < words.size() && !is_inserted_word(words[first]))
    ++first;
  if (first == words.size())
    return;
  std::vector<std::uint64_t> chain;
  bool is_innermost = false;  // the next frame becomes it, and its address exact
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_inserted = is_inserted_word(words[i]);
    const bool is_first =
        chain.empty() || chain.back() >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX);
    if (!is_inserted)
      chain.push_back(words[i] - (std::exchange(is_innermost, false) ? 1 : 0));
    else if (is_first)
      is_innermost = true;
  }
  if (!replace_chain(walked, chain, builder))
    return;
  if (const auto again = stream::parse_sample(walked.record, session.event()->attr))
    walked.sample = again;
}

/// Writes the symbols of samples, and changes their call chains.
class SampleAnnotator {
 public:
  explicit SampleAnnotator(symbolize::Annotator& annotator) : annotator_(annotator) {}

  /// The record's views are valid until the next call.
  void annotate(const Session& session, symbolize::CopiedStacks::Outcome& walked,
                std::uint16_t misc) {
    remove_tail_calls(session, walked, removed_);
    const auto chain = annotator_.annotate(session, *walked.sample, misc);
    if (!chain.empty() && !replace_chain(walked, chain, inserted_))
      annotator_.count_without_room();
  }

 private:
  symbolize::Annotator& annotator_;
  stream::RecordBuilder removed_, inserted_;
};

/// What a sample passes through.
struct Parts {
  symbolize::Annotator& annotator;
  names::Resolver& resolver;
  symbolize::CopiedStacks& stacks;
  symbolize::TimeChoice& times;
};

/// Forwards every record, with symbols before the samples that need them.  Returns whether the
/// input had symbols already.
bool annotate_all(Session& session, stream::StreamWriter& writer, const Parts& parts) {
  const auto& [annotator, resolver, stacks, times] = parts;
  bool had_symbols = false;
  SampleAnnotator samples(annotator);
  while (const auto record = session.next()) {
    had_symbols = had_symbols || record->is_ours();
    if (record->is_ours() || record->is_compressed())
      continue;  // symbols of an earlier pass, which ours replace; or data that could not be
                 // expanded
    if (!times.holds(session, *record))
      continue;
    const bool is_sample = session.sample().has_value();
    if (is_sample || session.mapping_change()) {
      const std::uint64_t time_ns = monotonic_time(session, *record);
      resolver.reach(session.history().boot(), time_ns);
      follow_mappings(session, annotator, resolver);
      if (is_sample)
        follow_compiler(session, time_ns, annotator, resolver);
    }
    auto walked = stacks.walk(*record);
    if (walked.sample && !stream::span_event(session.event()->name))  // else a mark
      samples.annotate(session, walked, walked.record.misc);
    if (record->type == stream::kRecordFinishedRound) {
      writer.write_finished_round();  // we write the end of a round ourselves
      writer.flush();                 // downstream tools see a live recording round by round
    } else {
      writer.write(walked.record.bytes);
    }
  }
  return had_symbols;
}

void report(const Session& session, const std::vector<std::string>& findings, const Input& input,
            const Io& io) {
  std::string text = stream::describe_losses(session.counts());
  for (const std::string& more : findings)
    if (!more.empty())
      text += (text.empty() ? "" : "; ") + more;
  if (!text.empty())
    io.note(
        fmt::format("{}: {}; {}", input.name(), plural(session.counts().samples, "sample"), text));
}

std::function<void(std::uint64_t, std::uint64_t)> shown_by(Progress& progress) {
  return [&progress](std::uint64_t bytes, std::uint64_t of_bytes) {
    constexpr double kMegabyte = 1e6;
    progress.show([&] {
      const std::string whole =
          of_bytes == 0 ? "" : fmt::format(" of {:.1f}", static_cast<double>(of_bytes) / kMegabyte);
      return fmt::format("pe-symbolize: debug file: {:.1f}{} MB",
                         static_cast<double>(bytes) / kMegabyte, whole);
    });
  };
}

/// Finds debug files of this machine and, if there are any, of servers.
objects::DebugSearch search_with(symbolize::Debuginfod* servers) {
  objects::DebugSearch search;
  if (servers != nullptr)
    search.fetch = [servers](Bytes build_id) { return servers->debug_file(build_id); };
  return search;
}

/// "debuginfod: 3 debug files, 1 request failed", for the closing line; empty if nothing failed.
std::string describe(const symbolize::Debuginfod* servers) {
  if (servers == nullptr || servers->failed() == 0)
    return {};
  return fmt::format("debuginfod: {}, {} failed{}", plural(servers->found(), "debug file"),
                     plural(servers->failed(), "request"),
                     servers->has_given_up() ? ", given up" : "");
}

std::string describe_doubts(unsigned files) {
  if (files == 0)
    return {};
  return fmt::format("{} found by name, with a different inode than recorded: names may be wrong",
                     plural(files, "file"));
}

int work(const CommandLine& line, Io& io) {
  const symbolize::Options options = symbolize::read_options(line);
  if (line.operands.size() > 1)
    throw UsageError("more than one input: streams cannot be joined");
  if (io.out.is_terminal())
    throw UsageError(
        "standard output is a terminal: pipe the stream into stackfold, or use -o FILE");
  Input input = Input::open(line.operands.front(), io.in_fd);
  symbolize::TimeChoice times(options.time, input);
  Session session(input);
  stream::StreamWriter writer(io.out);
  writer.write_header();
  writer.write_order();  // as a Session reads
  Progress progress(io.err, io.is_quiet);
  const auto servers = symbolize::Debuginfod::from_environment({.progress = shown_by(progress)});
  names::Resolver resolver([&io](const std::string& what) { io.note(what); }, options.detail,
                           "/proc/kallsyms", search_with(servers.get()));
  symbolize::Annotator annotator(
      writer, resolver,
      {.simplify_names = options.simplify_names, .tail_calls = options.tail_calls});
  symbolize::CopiedStacks stacks(session, resolver, options.may_continue);
  const bool had_symbols = annotate_all(session, writer, {annotator, resolver, stacks, times});
  progress.clear();
  const std::string damage = session.damage();
  if (damage.empty())
    writer.write_end();  // without it the next reader also knows that something is missing
  writer.flush();
  if (options.with_statistics)
    for (const std::string& row : names::table(annotator.counts()))
      io.report(row);
  if (!io.is_quiet) {
    if (!had_symbols)  // else an earlier pass gave the advice, which reads files
      advise(session, annotator, resolver, servers != nullptr, io);
    report(session,
           {stacks.report(), had_symbols ? "" : names::describe(annotator.counts()),
            symbolize::describe(annotator.tail_calls()), describe_doubts(resolver.doubtful_files()),
            names::describe(resolver.skipped_lines()), describe(servers.get())},
           input, io);
  }
  if (!damage.empty())
    io.report(input.name() + ": " + damage);
  return damage.empty() ? kOk : kFailure;
}

}  // namespace

const Tool kPeSymbolize{
    .name = "pe-symbolize",
    .synopsis = "[OPTION]... [FILE]",
    .summary = "Add function names to a sample stream or perf.data file.",
    .add_options = symbolize::add_options,
    .work = work,
    .is_filter = true,
};

}  // namespace pe
