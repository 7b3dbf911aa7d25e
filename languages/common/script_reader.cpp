// SPDX-License-Identifier: MIT
#include "languages/common/script_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/byte_reader.h"
#include "languages/common/interpreter.h"
#include "languages/common/walk.h"
#include "objects/mapped_image.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostKnownThreads = 65'536, kMostCodes = 262'144;
/// A server creates the functions of a script again for each request, often at the same addresses.
constexpr std::uint32_t kMostTries = 100;
constexpr std::size_t kMostAncestors = 8;

}  // namespace

std::variant<ScriptProcess, std::string> ScriptProcess::open(Memory memory,
                                                             const ScriptBinary& binary,
                                                             std::uint64_t bias) {
  const Spender::Scope scope(memory.spender());
  if (!memory.pointer(binary.runtime + bias))
    return "";
  auto layout = script_layout(memory, binary, bias);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptProcess(std::move(memory), std::get<ScriptLayout>(layout), binary, bias);
}

ScriptProcess::ScriptProcess(Memory memory, const ScriptLayout& layout, const ScriptBinary& binary,
                             std::uint64_t bias)
    : memory_(std::make_shared<Memory>(std::move(memory))),
      layout_(layout),
      runtime_(binary.runtime + bias),
      kept_(memory_->spender()) {
  for (const auto& [start, end] : binary.loop)
    loop_.push_back({start + bias, end + bias});
}

ScriptProcess ScriptProcess::fork(Memory memory) const {
  ScriptProcess child(
      std::move(memory), layout_,
      {.language = layout_.language, .runtime = runtime_, .version = 0, .loop = loop_}, 0);
  child.ancestors_.push_back(memory_);
  const std::size_t older = std::min(ancestors_.size(), kMostAncestors - 1);
  child.ancestors_.insert(child.ancestors_.end(), ancestors_.begin(),
                          ancestors_.begin() + static_cast<std::ptrdiff_t>(older));
  return child;
}

const ScriptFrames& ScriptProcess::read_stack(pid_t tid, ScriptThread thread) {
  memory_->forget();
  if (threads_.size() >= kMostKnownThreads)
    threads_.clear();
  stack_.frames.clear();
  thread.runtime = runtime_;
  stack_.is_complete =
      walk_script(*memory_, layout_, thread, threads_[tid],
                  [this](const ScriptFrame& frame) { stack_.frames.push_back(frame); });
  return stack_;
}

void ScriptProcess::begin_names() {
  memory_->forget();
  for (const auto& memory : ancestors_)
    memory->forget();
  may_read_.reset();
  if (codes_.size() < kMostCodes && functions_.size() < kMostCodes)
    return;
  codes_.clear();
  functions_.clear();
  kept_.release();
}

/// Returns whether code may be read in this sample.
bool ScriptProcess::may_read() {
  if (!may_read_)
    may_read_ = memory_->spender().may_start();
  return *may_read_;
}

std::optional<std::uint64_t> ScriptProcess::address_of(const ScriptFrame& frame,
                                                       const OnNew& on_new) {
  if (frame.code == kNoCode || frame.code == kUnreadableCode)
    return std::nullopt;
  const CodeId id{frame.code, frame.mark};
  const auto known = codes_.find(id);
  Code* code = known != codes_.end() ? &known->second : nullptr;
  if (code == nullptr || (code->address == 0 && !code->is_hidden && code->tries < kMostTries))
    code = read_new(id, frame, on_new);
  if (code == nullptr)
    return std::nullopt;
  if (code->address == 0)
    return code->is_hidden ? std::optional<std::uint64_t>(0) : std::nullopt;
  const std::uint32_t line = code->has_line_places ? frame.place : code->lines.line_at(frame.place);
  // The last address of a range is left for the one that call chains add.
  return code->address +
         std::min<std::uint64_t>(line > code->first_line ? line - code->first_line : 0,
                                 stream::kScriptBytes - 2);
}

/// Reads code that is new, or was unreadable.  Returns null if the budget does not allow it.
ScriptProcess::Code* ScriptProcess::read_new(const CodeId& id, const ScriptFrame& frame,
                                             const OnNew& on_new) {
  constexpr std::size_t kBytesOfNode = 32;
  if (!may_read())
    return nullptr;
  Spender& spender = memory_->spender();
  const Spender::Scope scope(spender);
  Code code = read_code(frame, on_new);
  may_read_ = !spender.has_lost();
  if (code.address == 0 && !code.is_hidden && spender.has_lost())
    return nullptr;
  code.lines.shrink();
  const std::size_t new_bytes =
      codes_.contains(id) ? 0 : sizeof(CodeId) + sizeof(Code) + kBytesOfNode;
  if (!kept_.may_add(new_bytes + code.lines.bytes())) {
    may_read_ = false;
    return nullptr;
  }
  Code& kept = codes_[id];
  code.tries = kept.tries + 1;
  return &(kept = std::move(code));
}

std::optional<ScriptCode> ScriptProcess::find_code(const ScriptFrame& frame) {
  const auto read = interpreter_of(layout_.language).read_code;
  auto code = read(*memory_, layout_, frame);
  for (auto ancestor = ancestors_.begin(); !code && ancestor != ancestors_.end(); ++ancestor)
    code = read(**ancestor, layout_, frame);
  return code;
}

ScriptProcess::Code ScriptProcess::read_code(const ScriptFrame& frame, const OnNew& on_new) {
  auto code = find_code(frame);
  if (!code)
    return {};
  if (code->is_hidden)
    return {.lines = {}, .is_hidden = true};
  const auto [known, is_new] = functions_.try_emplace(stream::script_path(code->function), 0);
  if (is_new) {
    kept_.may_add(known->first.size());
    known->second = stream::script_address(on_new(code->function));
  }
  return {.first_line = code->function.line,
          .lines = std::move(code->lines),
          .has_line_places = code->has_line_places,
          .address = known->second};
}

namespace {

bool is_program(const objects::Image& image) {
  return image.has_interpreter() || image.is_program_at_fixed_address();
}

objects::Segment lowest_code(const objects::Image& image) {
  objects::Segment lowest{};
  for (const objects::Segment& segment : image.segments())
    if (segment.executable && (!lowest.executable || segment.svma < lowest.svma))
      lowest = segment;
  return lowest;
}

/// Finds the loop without its symbol.
void add_loop(const objects::Image& image, ScriptBinary& script) {
  const std::size_t least = interpreter_of(script.language).loop_addresses;
  if (const auto found = least > 0 ? function_of_longest_table(image, least) : std::nullopt)
    script.loop.push_back({found->start_svma, found->end_svma});
}

/// Adds the parts of the loop that have no symbols.
void add_moved_parts(const objects::Image& image, std::vector<ScriptBinary::Range>& loop) {
  for (const auto& [start, end] : std::vector(loop))
    for (const auto& part : moved_parts(image, {start, end}))
      if (std::ranges::find(loop, part.start_svma, &ScriptBinary::Range::start) == loop.end())
        loop.push_back({part.start_svma, part.end_svma});
}

bool is_library(std::string_view name) {
  return name.find('/') == std::string_view::npos &&
         std::ranges::any_of(kLanguages, [name](const Language* language) {
           return language->is_interpreter() && name.starts_with(language->library);
         });
}

/// Returns the name of the interpreter's library that a program needs; empty if it needs none.
std::string interpreter_library(const objects::Image& image) {
  const auto strings = image.section_bytes(".dynstr");
  ByteReader reader(strings ? Bytes(strings->bytes) : Bytes());
  while (const auto text = reader.take_string())
    if (is_library(*text))
      return std::string(*text);
  return {};
}

}  // namespace

bool ScriptReader::wants(std::uint32_t /*pid*/, std::string_view path) const {
  return path.starts_with('/') && !path.starts_with("//");  // not memory, as "[vdso]"
}

bool ScriptReader::has_name(std::string_view path) const { return may_be_interpreter(path); }

std::string ScriptReader::advice(const ScriptFile& binary) const {
  return known_versions(*interpreter_of(binary.script.language).language);
}

void ScriptReader::follow(const stream::History& history, std::uint64_t time_ns) {
  now_ns_ = time_ns;
  follow_processes(history);
}

void ScriptReader::start(const stream::MappingChange& change) {
  if (const Process* const known = opened(change.pid);
      known != nullptr && now_ns_ <= known->opened->seen_ns)
    return;  // we know already what it has started
  forget(change.pid);
  if (fork(change.pid, change.forked_from))
    changed_.insert(change.pid);
}

void ScriptReader::on_forget(std::uint32_t pid, OpenedScript&& opened) {
  opened.process.end();
  if (keeps_ended_)
    ended_.insert_or_assign(pid, std::move(opened));
  changed_.insert(pid);
}

/// Returns null if the process has no interpreter that was opened.
const ScriptReader::Process* ScriptReader::opened(std::uint32_t pid) const {
  const auto found = processes().find(pid);
  return found != processes().end() && found->second.opened ? &found->second : nullptr;
}

/// Returns false if the parent has no interpreter.
bool ScriptReader::fork(std::uint32_t pid, std::uint32_t parent) {
  const Process* const known = opened(parent);
  if (known == nullptr)
    return false;
  Process child{.binary = known->binary, .mapping = known->mapping};
  child.opened.emplace(OpenedScript{.process = known->opened->process.fork(memory_of(pid))});
  put(pid, std::move(child));
  return true;
}

ScriptProcess* ScriptReader::process(std::uint32_t pid) {
  const auto found = processes().find(pid);
  if (found == processes().end())
    return nullptr;
  try_to_open(pid, found->second);
  return found->second.opened ? &found->second.opened->process : nullptr;
}

std::uint64_t ScriptReader::file_of(std::uint32_t pid) const {
  const Process* const known = opened(pid);
  return known != nullptr ? known->binary->number : 0;
}

/// Also examines the interpreter's library that the program needs, if it is where it usually is.
void ScriptReader::expect(const std::string& path) {
  const auto opened = objects::Image::open(path);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr || expect_file(*image, may_be_interpreter(path)) != nullptr)
    return;
  const std::string library = interpreter_library(*image);
  if (library.empty())
    return;
  std::error_code ignored;
  const auto program = std::filesystem::canonical(path, ignored);
  for (const std::filesystem::path& folder :
       {program.parent_path().parent_path() / "lib",
        std::filesystem::path("/usr/lib/x86_64-linux-gnu"), std::filesystem::path("/usr/lib64"),
        std::filesystem::path("/usr/lib")}) {
    const auto found = objects::Image::open((folder / library).string());
    if (const auto* file = std::get_if<objects::Image>(&found))
      expect_file(*file, true);
  }
}

std::optional<ScriptBinary> find_whole_interpreter(const objects::Image& image, bool has_name) {
  auto script = has_name || is_program(image) ? find_interpreter(image, !has_name) : std::nullopt;
  if (script && script->loop.empty())
    add_loop(image, *script);
  if (script)
    add_moved_parts(image, script->loop);
  return script;
}

ScriptReader::FoundBinary ScriptReader::find(const objects::Image& image, bool has_name) {
  auto script = find_whole_interpreter(image, has_name);
  if (!script)
    return nullptr;
  ScriptFile file{.number = files_.size() + 1,
                  .script = *std::move(script),
                  .segments = {image.segments().begin(), image.segments().end()}};
  Memory loaded = loaded_memory(image);
  const auto layout = script_layout(loaded, file.script, 0);
  if (const auto* known = std::get_if<ScriptLayout>(&layout))
    file.layout = *known;
  if (image.lacks_parts())
    return nullptr;
  struct stat status = {};
  if (file.layout && ::fstat(image.fd(), &status) == 0)
    new_files_.push_back({.number = file.number,
                          .inode = status.st_ino,
                          .device = status.st_dev,
                          .code = lowest_code(image).svma,
                          .code_offset = lowest_code(image).file_offset,
                          .runtime = file.script.runtime,
                          .layout = *file.layout});
  return files_.emplace_back(std::make_shared<const ScriptFile>(std::move(file)));
}

std::variant<OpenedScript, std::string> ScriptReader::open(Memory memory, const ScriptFile& binary,
                                                           const stream::Mapping& mapping) {
  const auto svma = objects::svma_of_code_mapping(binary.segments, mapping.file_offset);
  if (!svma)
    return "";
  auto opened = ScriptProcess::open(std::move(memory), binary.script, mapping.start - *svma);
  if (auto* const why = std::get_if<std::string>(&opened))
    return std::move(*why);
  return OpenedScript{.process = std::get<ScriptProcess>(std::move(opened))};
}

void ScriptReader::see(const Found& found) {
  if (found.file == 0 || found.file > files_.size())
    return;
  const ScriptReader::Process* const known = opened(found.pid);
  const auto& file = files_[found.file - 1];
  if ((known != nullptr && known->opened->process.runtime() == found.runtime) || !file->layout)
    return;
  const ScriptProcess* const parent = process(found.parent);
  if (parent == nullptr || parent->runtime() != found.runtime || !fork(found.pid, found.parent)) {
    Process seen{.binary = file, .mapping = {}};
    seen.opened.emplace(OpenedScript{.process = {memory_of(found.pid), *file->layout, file->script,
                                                 found.runtime - file->script.runtime}});
    put(found.pid, std::move(seen));
  }
  processes().at(found.pid).opened->seen_ns = found.time_ns;
}

std::set<std::uint32_t> ScriptReader::take_changed() {
  examine_postponed();
  for (auto& [pid, process] : processes())
    try_to_open(pid, process);
  return std::exchange(changed_, {});
}

/// Returns null if it has no interpreter.
OpenedScript* ScriptReader::running_or_ended(std::uint32_t pid) {
  if (const auto running = processes().find(pid);
      running != processes().end() && running->second.opened)
    return &*running->second.opened;
  const auto ended = ended_.find(pid);
  return ended != ended_.end() ? &ended->second : nullptr;
}

/// Returns the number of a new function; that of unreadable ones if the stream has too many of the
/// process.
std::uint32_t ScriptReader::number_of(OpenedScript& script, const stream::ScriptFunction& function,
                                      const OnFunction& on_function) {
  if (!script.process.spender().may_write(stream::script_path(function).size()))
    return 0;
  on_function(next_number_, function);
  return next_number_++;
}

const ScriptStack& ScriptReader::name(std::uint32_t pid, const ScriptFrames& stack,
                                      const OnFunction& on_function) {
  stack_.loop.clear();
  stack_.words.clear();
  stack_.is_complete = stack.is_complete;
  OpenedScript* const known = running_or_ended(pid);
  if (known == nullptr || stack.frames.empty())
    return stack_;
  ScriptProcess& process = known->process;
  const auto& interpreter = interpreter_of(process.layout().language);
  Counts& counts = counts_[interpreter.kind];
  for (const auto& [start, end] : process.loop())
    stack_.loop.push_back({start, end});
  // The target also pays for look-ups of known functions, and for records of new ones.
  const Spender::Scope scope(process.spender());
  process.begin_names();
  for (const ScriptFrame& frame : stack.frames) {
    const ScriptWord mark = frame.ends_call ? kEndsCall : 0;
    const auto address = process.address_of(frame, [&](const stream::ScriptFunction& function) {
      return number_of(*known, function, on_function);
    });
    const bool is_frame = frame.code != kNoCode && address != 0;
    if (!is_frame && !frame.ends_call)
      continue;
    const bool is_unreadable =
        is_frame && address.value_or(stream::script_address(0)) == stream::script_address(0);
    if (is_unreadable && !std::exchange(known->has_unreadable, true))
      on_function(0, {.name = std::string(interpreter.language->unreadable),
                      .file = {},
                      .line = 0,
                      .kind = interpreter.kind});
    counts.frames += is_frame ? 1 : 0;
    counts.unreadable += is_unreadable ? 1 : 0;
    stack_.words.push_back(mark | (is_frame ? address.value_or(stream::script_address(0)) : 0));
  }
  return stack_;
}

void ScriptReader::describe(Closing& closing) const {
  for (const auto& [kind, counts] : counts_)
    closing.named_frames(stream::runtime_name(kind), counts.frames, counts.unreadable);
  describe_unopened(closing, "interpreters");
}

}  // namespace pe::languages
