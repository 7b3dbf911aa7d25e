// SPDX-License-Identifier: MIT
#include "pe-symbolize/pe_symbolize.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "pe-symbolize/annotator.h"
#include "pe-symbolize/copied_stacks.h"
#include "pe-symbolize/options.h"

namespace pe {
namespace {

using session::Session;

void say(cli::Io& io, const std::string& what) {
  io.err.write("pe-symbolize: " + printable(what) + "\n");
}

/// Keeps the names in step with the mappings.
void follow(const Session& session, symbolize::Annotator& annotator,
            symbolize::Resolver& resolver) {
  const auto& change = session.mapping_change();
  if (!change)
    return;
  annotator.forget(*change);
  if (change->mapped == nullptr)
    resolver.forget_jit(change->pid);
  else if (change->mapped->is_anonymous())
    resolver.expect_jit(change->pid);
}

/// Passes every record on, names before the samples that need them.
void annotate_all(Session& session, perf::StreamWriter& writer, symbolize::Annotator& annotator,
                  symbolize::Resolver& resolver, symbolize::CopiedStacks& stacks) {
  while (const auto record = session.next()) {
    if (record->is_ours())
      continue;  // names of an earlier pass: ours replace them
    follow(session, annotator, resolver);
    const auto walked = stacks.walk(*record);
    if (walked.sample)
      annotator.annotate(session, *walked.sample, record->misc);
    writer.write(walked.record.bytes);
    if (record->type == perf::kRecordFinishedRound)
      writer.flush();  // a live recording shows up downstream round by round
  }
}

void report(const Session& session, const std::vector<std::string>& findings,
            const io::Input& input, cli::Io& io) {
  std::string text = session::describe_losses(session.counts());
  for (const std::string& more : findings)
    if (!more.empty())
      text += (text.empty() ? "" : "; ") + more;
  if (!text.empty())
    say(io,
        fmt::format("{}: {}; {}", input.name(), plural(session.counts().samples, "sample"), text));
}

int work(const cli::CommandLine& line, cli::Io& io) {
  const symbolize::Options options = symbolize::read_options(line);
  if (line.operands.size() > 1)
    throw UsageError("one input at a time: streams cannot be joined");
  if (io.out.is_terminal())
    throw UsageError("the stream is binary: pipe it into stackfold");
  io::Input input = io::Input::open(line.operands.front(), io.in_fd);
  Session session(input);
  perf::StreamWriter writer(io.out);
  writer.write_header();
  symbolize::Resolver resolver([&io](const std::string& what) { say(io, what); }, options.detail);
  symbolize::Annotator annotator(writer, resolver);
  symbolize::CopiedStacks stacks(session, options.may_continue);
  annotate_all(session, writer, annotator, resolver, stacks);
  const std::string damage = session.damage();
  if (damage.empty())
    writer.write_finished_round();  // without it the next reader knows, too, that something is
                                    // missing
  writer.flush();
  if (!options.quiet)
    report(session,
           {stacks.report(), symbolize::describe(annotator.counts()),
            symbolize::describe(resolver.skipped_lines())},
           input, io);
  if (!damage.empty())
    say(io, input.name() + ": " + damage);
  io.err.flush();
  return damage.empty() ? cli::kOk : cli::kFailure;
}

}  // namespace

const cli::Tool kPeSymbolize{
    .name = "pe-symbolize",
    .synopsis = "[OPTION]... [FILE]",
    .summary = "Put the names of functions into a sample stream or perf.data file.",
    .add_options = symbolize::add_options,
    .work = work,
};

int pe_symbolize_main(std::span<const std::string> args, cli::Io& io) {
  return cli::run(kPeSymbolize, args, io);
}

}  // namespace pe
