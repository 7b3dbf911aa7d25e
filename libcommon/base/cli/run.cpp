// SPDX-License-Identifier: MIT
#include "base/cli/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/characters.h"
#include "base/cli/command_line.h"
#include "base/cli/version.h"
#include "base/error.h"
#include "base/text.h"

namespace pe {

namespace {

namespace po = boost::program_options;

int work_on(Output& out, const Tool& tool, const CommandLine& line, const Io& io) {
  Io own{io.in_fd, out, io.err, tool.name, tool.is_filter && line.has("quiet"), io.hidden_options};
  const int status = tool.work(line, own);
  out.flush();  // a full disk must not look like success
  return status;
}

/// Writes the result of a filter to the file of --output, or to standard output.
int work_on_output(const Tool& tool, const CommandLine& line, const Io& io) {
  const std::string* const path = tool.is_filter ? line.text("output") : nullptr;
  if (path == nullptr || *path == "-")
    return work_on(io.out, tool, line, io);
  FileOutput file(*path, Named::kWhenWhole);
  const int status = work_on(file, tool, line, io);
  if (status == kOk || (status != kUsage && file.has_content()))
    file.keep();
  return status;
}

int run_or_throw(const Tool& tool, const CommandLine& line, const Io& io) {
  if (!line.has("help") && !line.has("version"))
    return work_on_output(tool, line, io);
  io.out.write(line.has("help") ? help_text(tool)
                                : fmt::format("{} {}\n", tool.name, version_text()));
  io.out.flush();
  return kOk;
}

const PerlName* find_script(const Tool& tool, std::string_view called) {
  const auto found =
      std::find_if(tool.perl_names.begin(), tool.perl_names.end(),
                   [&](const PerlName& script) { return script.name == file_name(called); });
  return found == tool.perl_names.end() ? nullptr : &*found;
}

int show_usage(const Tool& tool, const PerlName& script, const std::vector<std::string>& problems,
               const Io& io) {
  for (const std::string& problem : problems)
    io.report(problem);
  io.err.write(perl_usage_text(tool, script, all_options(tool)));
  io.err.flush();
  return script.usage_status;
}

/// Opens the standard descriptors that the caller closed.  Otherwise the next file that we open
/// would become one of them, and messages would be written to it.  Reads of such a standard input
/// and writes to such an output fail.
bool open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", wrong_way) != fd)
      return false;
  }
  return true;
}

/// Returns the options that are not among `typed`, those of the command that the user has typed,
/// separated by blanks.
std::vector<std::string> options_beyond(std::string_view typed,
                                        const po::options_description& options) {
  std::vector<std::string> beyond;
  const std::string known = fmt::format(" {} ", typed);
  for (const auto& option : options.options())
    if (known.find(fmt::format(" {} ", option->long_name())) == std::string::npos)
      beyond.push_back(option->long_name());
  return beyond;
}

/// Is a text the start of a command of this project, as in "to see it: pe-record -p PID "?
bool is_in_command(std::string_view before) {
  constexpr std::array<std::string_view, 9> kCommands{"flamediff", "flamesvg",  "malloctrace",
                                                      "offcpu",    "pe-record", "pe-symbolize",
                                                      "stackfold", "stackpipe", "stacktop"};
  std::string_view clause = before.substr(before.find_last_of("|:;,()") + 1);
  while (const auto word = take_until(clause, ' '))
    if (std::ranges::find(kCommands, *word) != kCommands.end())
      return true;
  return false;
}

/// Puts "TOOL's" before each hidden option, unless the tool's name is there, or the option is that
/// of a command.
std::string with_owners(std::string message, std::string_view tool,
                        std::span<const std::string> hidden) {
  constexpr std::string_view kDashes = "--", kOfName = "abcdefghijklmnopqrstuvwxyz-";
  for (std::size_t at = message.find(kDashes); at != std::string::npos;) {
    const std::size_t end = std::min(message.find_first_not_of(kOfName, at), message.size());
    const std::string name = message.substr(at + kDashes.size(), end - at - kDashes.size());
    const std::string_view before = std::string_view(message).substr(0, at);
    const std::string owner = fmt::format("{}'s ", tool);
    const bool has_owner = before.ends_with(owner) || before.ends_with(fmt::format("{} ", tool)) ||
                           is_in_command(before);
    const bool is_hidden = !has_owner && std::ranges::find(hidden, name) != hidden.end();
    if (is_hidden)
      message.insert(at, owner);
    at = message.find(kDashes, end + (is_hidden ? owner.size() : 0));
  }
  return message;
}

constexpr std::string_view kOutOfMemory = ": out of memory\n";

void ignore_signal(int /*signal*/) {}

/// Makes writes beyond the limit of a file's size (setrlimit(2)) fail with a message, as on a full
/// disk.  The signal is not ignored, because commands that we run would inherit that.
void let_writes_fail() {
  struct sigaction now = {};
  if (::sigaction(SIGXFSZ, nullptr, &now) != 0 || now.sa_handler == SIG_IGN)
    return;  // writes fail already; commands that we run inherit that
  struct sigaction fail = {};
  fail.sa_handler = ignore_signal;
  fail.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &fail, nullptr);
}

void let_one_interrupt_pass() {
  struct stat in = {};
  if (::fstat(STDIN_FILENO, &in) != 0 || !S_ISFIFO(in.st_mode))
    return;
  struct sigaction old = {};
  if (::sigaction(SIGINT, nullptr, &old) != 0 || old.sa_handler == SIG_IGN)
    return;
  struct sigaction once = {};
  once.sa_handler = ignore_signal;
  once.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &once, nullptr);
}

/// Lets the heap use huge pages, where the system has them: page faults took a fifth of a filter's
/// time.  This reserves addresses, not memory, and so respects a limit of them.
void use_huge_pages() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
    return;
  constexpr int kReserved = 256 << 20;
  constexpr int kMostOnHeap = 32 << 20;  // glibc's limit; larger blocks have pages of their own
  constexpr int kUsualStep = 128 << 10;  // mallopt(3)
  constexpr std::size_t kHugePage = 2 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kMostOnHeap);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kReserved);
  ::mallopt(M_TOP_PAD, kReserved);
  // The heap has no room for this block, and grows by it and by kReserved.
  void* const block = std::malloc(kMostOnHeap / 2);  // NOLINT(cppcoreguidelines-no-malloc)
  ::mallopt(M_TOP_PAD, kUsualStep);
  void* first = block;
  std::size_t bytes = kReserved + kMostOnHeap / 2;
  if (block != nullptr && std::align(kHugePage, kReserved, first, bytes) != nullptr &&
      static_cast<char*>(first) + kReserved <= ::sbrk(0))  // else the block is not on the heap
    ::madvise(first, kReserved, MADV_HUGEPAGE);
  std::free(block);  // NOLINT(cppcoreguidelines-no-malloc)
}

}  // namespace

std::string Io::line_of(std::string_view message) const {
  return fmt::format("{}: {}", tool,
                     printable(with_owners(std::string(message), tool, hidden_options)));
}

void Io::report(std::string_view message) const {
  err.write(line_of(message) + '\n');
  err.flush();
}

void Io::note(std::string_view message) const {
  if (!is_quiet)
    report(message);
}

int run_as(const Tool& tool, std::string_view called, std::span<const std::string> args, Io& io) {
  io.tool = tool.name;
  const PerlName* script = find_script(tool, called);
  bool runs_command = false;
  try {
    const po::options_description options = all_options(tool);
    std::vector<std::string> hidden, strict;
    if (const char* typed = tool.runs_command ? std::getenv("STACKPIPE_OPTIONS") : nullptr) {
      io.hidden_options = hidden = options_beyond(typed, options);
      ::unsetenv("STACKPIPE_OPTIONS");  // the recorded command does not inherit it
    }
    if (script != nullptr) {
      const StrictArgs rewritten = to_strict(*script, args);
      if (rewritten.wants_usage || !rewritten.problems.empty())
        return show_usage(tool, *script, rewritten.problems, io);
      args = strict = rewritten.args;
    }
    const CommandLine line = parse_command_line(tool, options, args);
    runs_command = !line.command.empty();
    return run_or_throw(tool, line, io);
  } catch (const BrokenPipe&) {
    return kPipeClosed;
  } catch (const UsageError& e) {
    if (script != nullptr)
      return show_usage(tool, *script, std::vector<std::string>{e.what()}, io);
    io.report(std::string(e.what()) + " (see --help)");
    return kUsage;
  } catch (const CommandError& e) {
    io.report(e.what());
    return e.status();
  } catch (const std::bad_alloc&) {  // there may be no memory for the message either
    for (const std::string_view part : {tool.name, kOutOfMemory})
      io.err.write(part);
    io.err.flush();
    return runs_command ? kOwnFailure : kFailure;
  } catch (const std::exception& e) {
    io.report(e.what());
    return runs_command ? kOwnFailure : kFailure;
  }
}

int run_main(const Tool& tool, int argc, char** argv) try {
  if (!open_standard_descriptors())
    return kFailure;
  if (!tool.runs_command)
    let_one_interrupt_pass();
  let_writes_fail();
  if (tool.is_filter)
    use_huge_pages();
  FdOutput out(STDOUT_FILENO, "stdout");
  TerminalOutput terminal(out);
  MessageOutput err(STDERR_FILENO);
  Io io{STDIN_FILENO, out.is_terminal() ? static_cast<Output&>(terminal) : out, err};
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  return run_as(tool, argc > 0 ? argv[0] : tool.name, args, io);
} catch (const std::bad_alloc&) {  // there is no memory even for the code above
  for (const std::string_view part : {tool.name, kOutOfMemory})
    (void)!::write(STDERR_FILENO, part.data(), part.size());
  return tool.runs_command ? kOwnFailure : kFailure;
}

}  // namespace pe
