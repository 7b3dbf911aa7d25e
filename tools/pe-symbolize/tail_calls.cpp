// SPDX-License-Identifier: MIT
#include "pe-symbolize/tail_calls.h"

#include <algorithm>

#include "pe-symbolize/tail_call_search.h"

namespace pe::symbolize {
namespace {

/// Does code of this name jump to an address that its caller chose?
bool is_indirect_thunk(std::string_view name) {
  return name.starts_with("__x86_indirect_thunk") || name.starts_with("__x86_return_thunk") ||
         name.starts_with("__llvm_retpoline");
}

/// Is it a C++ function that only changes `this` and jumps to another (Itanium C++ ABI, 5.1.4.4)?
bool is_thunk(std::string_view name) {
  return name.starts_with("_ZTh") || name.starts_with("_ZTv") || name.starts_with("_ZTc") ||
         is_indirect_thunk(name);
}

}  // namespace

/// Calls `work` if the file's owner may spend what it costs.  Measuring that takes longer than most
/// of the work, and is not needed for files that cost nobody's budget.
template <typename Work>
void TailCalls::with_payer(std::uint32_t number, const Work& work) {
  Spender& spender = code_.reader(number).spender();
  if (spender.is_free())
    return work();
  const Spender::Scope scope(spender);
  if (spender.may_start())
    work();
}

/// Returns the number of the file, and remembers the mapping as one of the process.
std::uint32_t TailCalls::use(std::uint32_t pid, const stream::Mapping& mapping) {
  Process& process = processes_[pid];
  const auto [known, is_new] = process.used.try_emplace(mapping.start);
  if (is_new)
    known->second = {mapping, code_.file_of(pid, mapping)};
  const std::uint32_t file = known->second.second;
  if (is_new)
    process.by_file.try_emplace(file, mapping);
  if (file >= files_.size())
    files_.resize(file + std::size_t{1});
  return file;
}

/// Returns the number of a place where a function starts, or of a slot that holds it.
std::uint32_t TailCalls::start_at(std::uint32_t file, const CodeReader::Call& call) {
  std::uint32_t& number = files_[file].starts[call.svma | (call.is_by_slot ? kSlotMark : 0)];
  if (number == 0) {
    number = static_cast<std::uint32_t>(starts_.size());
    starts_.push_back({file, call});
  }
  return number;
}

TailCalls::Code TailCalls::code_at(std::uint32_t pid, std::uint64_t lookup_address,
                                   const stream::Mapping& mapping, std::uint64_t start_svma) {
  const std::uint32_t number = use(pid, mapping);
  if (number == 0 || start_svma == 0)
    return {};
  const auto svma =
      code_.known(number).svma_of(lookup_address - mapping.start + mapping.file_offset);
  if (!svma)
    return {};
  Code code{start_at(number, {start_svma})};
  if (const auto call = code_.reader(number).call_before(*svma + 1))
    code.callee = start_at(number, *call);
  return code;
}

std::uint32_t TailCalls::number_of(const std::string& symbol) {
  const auto [known, is_new] =
      numbers_.try_emplace(symbol, static_cast<std::uint32_t>(names_.size()) | kNamed);
  if (is_new)
    names_.push_back(symbol);
  return known->second;
}

/// Returns the function at `svma`, 0 if there is none.
std::uint32_t TailCalls::function_at(std::uint32_t number, std::uint64_t svma, std::uint32_t pid,
                                     const stream::Mapping& mapping) {
  const auto range = code_.reader(number).function_at(svma);
  if (!range)
    return 0;
  File& file = files_[number];
  const auto [known, is_new] =
      file.functions.try_emplace(range->start_svma, static_cast<std::uint32_t>(functions_.size()));
  if (!is_new)
    return known->second;
  Function& function = functions_.emplace_back();
  function.file = number;
  function.range = *range;
  function.whole = known->second;
  const auto symbol = resolver_.symbol(pid, mapping, range->start_svma);
  if (!symbol || symbol->offset != 0)
    return known->second;
  function.name = without_part(symbol->symbol);
  function.is_thunk = is_thunk(function.name);
  function.whole = file.by_name.try_emplace(function.name, known->second).first->second;
  return known->second;
}

/// Returns the function that a place is in, 0 if there is none.
std::uint32_t TailCalls::function_of(const Place& place, std::uint32_t file, std::uint64_t svma) {
  const auto mapping = place.process.by_file.find(file);
  return mapping == place.process.by_file.end()
             ? 0
             : function_at(file, svma, place.pid, mapping->second);
}

/// Returns the function that starts there, 0 if there is none.
std::uint32_t TailCalls::function_starting(const Place& place, std::uint32_t file,
                                           std::uint64_t svma) {
  const std::uint32_t found = function_of(place, file, svma);
  return functions_[found].range.start_svma == svma ? found : 0;
}

/// Functions of names may be in any file of the process.
std::shared_ptr<TailCalls::Files> TailCalls::files_of(std::uint32_t pid,
                                                      const stream::AddressSpace& space) {
  constexpr std::size_t kMost = 1024, kMostKept = 64;
  std::vector<std::uint32_t> numbers;
  for (const auto& [start, mapping] : space.all())
    if (mapping.file->path.starts_with('/') && !mapping.file->is_anonymous())
      numbers.push_back(numbers.size() < kMost ? use(pid, mapping) : 0);
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const auto& known : last_files_)
    if (known->numbers == numbers)
      return known;
  if (last_files_.size() == kMostKept)
    last_files_.pop_front();
  return last_files_.emplace_back(std::make_shared<Files>(Files{.numbers = std::move(numbers)}));
}

/// Returns the function that the loader chose for a name: that of the only file which offers it.
/// 0: an ifunc, so a function without that name runs.  nullopt: not known, also if a file of the
/// process cannot be read, because it may have replaced the function.
std::optional<std::uint32_t> TailCalls::find_named(const Place& place, const std::string& symbol) {
  std::optional<std::uint32_t> found;
  for (const std::uint32_t file : place.files.numbers) {
    const auto exports = file != 0 ? code_.reader(file).exports_of(symbol) : std::nullopt;
    if (!exports)
      return std::nullopt;
    for (const objects::Export& known : *exports) {
      if (known.is_ifunc)
        return 0;
      const std::uint32_t function = function_starting(place, file, known.svma);
      if (function == 0 || (found && *found != function))
        return std::nullopt;
      found = function;
    }
  }
  return found;
}

/// Returns the function that is called or jumped to; as find_named().
std::optional<std::uint32_t> TailCalls::target_of(const Place& place, std::uint32_t called) {
  if ((called & kNamed) == 0)
    return called;
  const auto [known, is_new] =
      place.files.targets.try_emplace(std::uint64_t{called} << 32U | place.file);
  if (is_new)
    known->second = find_named(place, names_[called & ~kNamed]);
  return known->second;
}

const Jumps& TailCalls::jumps_of(Function& function) {
  if (!function.jumps)
    function.jumps = std::make_unique<Jumps>(code_.reader(function.file).jumps_of(function.range));
  return *function.jumps;
}

/// Where symbols are missing, may a function be a part that the compiler has split off?  Such
/// parts are not aligned, conditional jumps lead there, or jumps lead back from there.
bool TailCalls::may_be_part(const Function& of, Function& part, const Jump& jump) {
  constexpr std::uint64_t kAlignment = 16;
  if (!part.name.empty())
    return false;
  if (jump.is_conditional || part.range.start_svma % kAlignment != 0)
    return true;
  const Jumps& back = jumps_of(part);
  return !back.is_whole || std::ranges::any_of(back.into_middle, [&of](std::uint64_t svma) {
    return of.range.covers(svma);
  });
}

/// Returns the edge of a jump from one part of a function; nullopt if it leads to no other
/// function, and an edge to 0 if it is not known where.  Adds another part of the function to
/// `parts`.
std::optional<TailCalls::Edge> TailCalls::edge_of(const Place& place, const Function& part,
                                                  const Jump& jump,
                                                  std::vector<std::uint32_t>& parts) {
  Edge edge{.next_svma = jump.next_svma};
  if (!jump.to.symbol.empty()) {
    edge.to = number_of(jump.to.symbol);
    return edge;
  }
  edge.to = function_starting(place, part.file, jump.to.svma);
  Function& to = functions_[edge.to];
  if (edge.to != 0 && to.whole == part.whole) {
    if (std::ranges::find(parts, edge.to) == parts.end())
      parts.push_back(edge.to);
    return std::nullopt;
  }
  if (edge.to != 0 && may_be_part(part, to, jump))
    edge.to = 0;
  return edge;
}

/// Adds the jumps of one part, and its other parts to `parts`.
void TailCalls::add_exits(const Place& place, std::uint32_t part, std::vector<std::uint32_t>& parts,
                          Exits& exits) {
  const Jumps& jumps = jumps_of(functions_[part]);
  exits.has_computed = exits.has_computed || jumps.has_computed;
  const std::uint32_t whole = functions_[part].whole;
  const bool stays = std::ranges::all_of(jumps.into_middle, [&](std::uint64_t svma) {
    const std::uint32_t to = function_of(place, functions_[part].file, svma);
    return to != 0 && functions_[to].whole == whole;
  });
  exits.is_whole = exits.is_whole && jumps.is_whole && !jumps.has_switch && stays;
  for (const Jump& jump : jumps.named) {
    const auto edge = edge_of(place, functions_[part], jump, parts);
    exits.is_whole = exits.is_whole && (!edge || edge->to != 0);
    if (!edge || edge->to == 0)
      continue;
    if ((edge->to & kNamed) == 0 && is_indirect_thunk(functions_[edge->to].name))
      exits.has_computed = true;
    const auto same = std::ranges::find(exits.edges, edge->to, &Edge::to);
    if (same == exits.edges.end())
      exits.edges.push_back(*edge);
    else
      same->is_one_of_several = true;
  }
}

/// Returns the jumps of a function, and of its parts that they reach.
const TailCalls::Exits& TailCalls::exits_of(const Place& place, std::uint32_t number) {
  constexpr std::size_t kMostParts = 8;
  constexpr std::uint64_t kMostDecodedBytes = std::uint64_t{64} << 20;
  if (functions_[number].exits)
    return *functions_[number].exits;
  auto exits = std::make_unique<Exits>();
  exits->is_whole = false;  // if nobody pays
  const std::uint32_t file = functions_[number].file;
  with_payer(file, [&] {
    exits->is_whole = true;
    const std::uint64_t before = code_.known(file).decoded_bytes();
    std::vector<std::uint32_t> parts{number};
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (i < kMostParts && decoded_bytes_ < kMostDecodedBytes)
        add_exits(place, parts[i], parts, *exits);
      else
        exits->is_whole = false;
    decoded_bytes_ += code_.known(file).decoded_bytes() - before;
  });
  functions_[number].exits = std::move(exits);
  return *functions_[number].exits;
}

/// Returns the frame of a step; nullopt if it has none.
std::optional<TailCalls::Frame> TailCalls::frame_of(const Process& process,
                                                    const Step& step) const {
  const Function& function = functions_[step.function];
  if (function.is_thunk)
    return std::nullopt;
  const bool is_start = step.edge.next_svma == 0 || step.edge.is_one_of_several;
  const std::uint64_t svma = is_start ? function.range.start_svma : step.edge.next_svma - 1;
  const auto offset = code_.known(function.file).file_offset_of(svma);
  for (const auto& [start, used] : process.used) {
    const stream::Mapping& mapping = used.first;
    if (used.second == function.file && offset && *offset >= mapping.file_offset &&
        *offset - mapping.file_offset < mapping.end - mapping.start)
      return Frame{.avma = mapping.start + (*offset - mapping.file_offset), .is_start = is_start};
  }
  return std::nullopt;
}

/// Returns the function that is called, or its name; 0 if no function starts there.
std::uint32_t TailCalls::called_at(const Place& place, const Start& start) {
  CodeReader& reader = code_.reader(start.file);
  const auto target = reader.target_of(start.call);
  if (!target)
    return 0;
  return target->symbol.empty() ? function_starting(place, start.file, target->svma)
                                : number_of(target->symbol);
}

TailCalls::Way TailCalls::find(const Place& place, std::uint32_t called) {
  const auto target = target_of(place, called);
  if (!target)
    return {.is_unknown = true};
  const Function& first = functions_[*target];
  const Function& inner = functions_[place.inner];
  // A function of another file with the same name has replaced it.
  if (*target == 0 || first.whole == place.inner || is_indirect_thunk(first.name) ||
      (!first.name.empty() && first.name == inner.name))
    return {};
  return find_ways(place, called, *target);
}

/// Returns the functions on the way from the first one.
TailCalls::Way TailCalls::find_ways(const Place& place, std::uint32_t called, std::uint32_t first) {
  Search search(*this, place);
  search.run(first);
  const auto& ways = search.ways();
  Way way;
  bool is_all = true;
  if (const auto shortest = std::ranges::min_element(ways, {}, &std::vector<Step>::size);
      shortest != ways.end()) {
    is_all = shortest->size() == 1 || (ways.size() == 1 && search.is_all());
    way.steps = is_all ? *shortest : std::vector{shortest->front()};
    Edge& jump = way.steps.front().edge;
    jump.is_one_of_several = jump.is_one_of_several || !is_all;
  } else if ((called & kNamed) == 0 && search.is_open()) {
    // The loader may still be looking for a function that is called by name.
    is_all = search.is_first_open();
    way.steps = {{first}};
  }
  way.is_unknown = way.steps.empty();
  if (!is_all)
    way.steps.emplace_back();
  return way;
}

TailCalls::Between TailCalls::between_of(const Process& process, const Way& way) const {
  Between between{.is_unknown = way.is_unknown};
  for (auto step = way.steps.rbegin(); step != way.steps.rend(); ++step) {
    auto frame = step->function == 0 ? Frame{} : frame_of(process, *step);
    if (!frame)
      continue;
    frame->was_called = step + 1 == way.steps.rend();
    between.frames.push_back(*frame);
  }
  return between;
}

/// Returns what is known of a pair, or what `find(place)` finds, if somebody pays.
template <typename Find>
TailCalls::Between* TailCalls::remember(std::uint32_t pid, const stream::AddressSpace& space,
                                        std::uint64_t key, const Find& find) {
  Process& process = processes_[pid];
  std::uint32_t& number = process.pairs[key];
  if (number != 0)
    return number == kNothing ? nullptr : &process.between[number - 1];
  number = kNothing;
  if (!process.files)
    process.files = files_of(pid, space);
  auto& ways = process.files->ways;
  auto way = ways.find(key);
  if (way == ways.end())
    if (auto found = find(Place{pid, process, *process.files, 0, 0}))
      way = ways.emplace(key, std::move(*found)).first;
  if (way == ways.end() || (way->second.steps.empty() && !way->second.is_unknown))
    return nullptr;
  process.between.push_back(between_of(process, way->second));
  number = static_cast<std::uint32_t>(process.between.size());
  return &process.between.back();
}

TailCalls::Between* TailCalls::between(std::uint32_t pid, const stream::AddressSpace& space,
                                       Code caller, Code inner) {
  const std::uint64_t key = std::uint64_t{caller.callee} << 32U | inner.function;
  return remember(pid, space, key, [&](Place place) {
    const Start& start = starts_[inner.function];
    std::optional<Way> way;
    place.file = start.file;
    const auto work = [&] {
      place.inner = functions_[function_of(place, start.file, start.call.svma)].whole;
      const std::uint32_t called = place.inner != 0 ? called_at(place, starts_[caller.callee]) : 0;
      way = called != 0 ? this->find(place, called) : Way{};
    };
    with_payer(starts_[caller.callee].file, [&] { with_payer(start.file, work); });
    return way;
  });
}

TailCalls::Between* TailCalls::before_allocator(std::uint32_t pid,
                                                const stream::AddressSpace& space, Code caller) {
  const std::uint64_t key = std::uint64_t{caller.callee} << 32U | kAllocator;
  return remember(pid, space, key, [&](Place place) {
    const Start& start = starts_[caller.callee];
    std::optional<Way> way;
    place.inner = kAllocator;
    place.file = start.file;
    with_payer(start.file, [&] {
      const std::uint32_t called = called_at(place, start);
      // The allocator itself has a name; that of another function says too little of what runs.
      way = called != 0 && (called & kNamed) == 0 ? find_ways(place, called, called) : Way{};
    });
    return way;
  });
}

void TailCalls::forget(const stream::MappingChange& change) {
  const auto process = processes_.find(change.pid);
  if (process == processes_.end())
    return;
  const auto& used = process->second.used;
  const bool is_code = change.mapped == nullptr ||
                       (change.mapped->path.starts_with('/') && !change.mapped->is_anonymous());
  const bool is_used = std::ranges::any_of(used, [&change](const auto& item) {
    const stream::Mapping& mapping = item.second.first;
    return mapping.start < change.end && change.start < mapping.end;
  });
  if (is_code || is_used)
    processes_.erase(process);
}

}  // namespace pe::symbolize
